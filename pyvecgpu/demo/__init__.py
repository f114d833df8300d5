"""The main job: a network learns to read handwritten digits, `python -m pyvecgpu demo`.

by_hand writes its gradients out; networks and training have those whose gradients the tape finds;
characters learns to write. Each is trained on the device, and on the CPU for comparison.
"""
