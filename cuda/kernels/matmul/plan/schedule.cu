// Which tiles are cut into slices of k; see schedule.cuh.
#include "kernels/matmul/plan/cost.cuh"
#include "kernels/matmul/plan/schedule.cuh"

namespace pvg::matmul {

Schedule whole_schedule(int64_t tiles_down, int64_t tiles_across, int k_blocks, int step) {
    Schedule schedule;
    schedule.tiles_down = static_cast<int>(tiles_down);
    schedule.tiles_across = static_cast<int>(tiles_across);
    schedule.k_blocks = k_blocks, schedule.k_step = step;
    schedule.whole = static_cast<int>(tiles_down * tiles_across);
    return schedule;
}

Schedule cut_schedule(const Schedule &all_whole, int cluster, double overhead) {
    Schedule schedule = all_whole;
    const int64_t count = int64_t(schedule.tiles_down) * schedule.tiles_across;
    const int width = cost::tuned_multiprocessors / cluster; // tiles at a time
    const int longest = schedule.k_blocks / schedule.k_step;
    double best = static_cast<double>((count + width - 1) / width);
    for (int extra = 0; extra < 2; extra++) { // the last round, or the last two
        const int64_t whole = (count / width - extra) * width, cut = count - whole;
        if (whole < 0 || cut == 0) continue;
        for (int slices = 2; slices <= 8 && slices <= longest / 2; slices++) {
            if ((slices - 1) * cut > 2 * width) break; // the workspace stays small
            const int64_t rounds = (cut * slices + width - 1) / width;
            const double cost = static_cast<double>(whole / width) +
                                static_cast<double>(rounds) / slices + overhead * slices;
            if (cost >= best - 1e-9) continue;
            best = cost;
            schedule.whole = static_cast<int>(whole);
            schedule.cut = static_cast<int>(cut), schedule.slices = slices;
        }
    }
    return schedule;
}

} // namespace pvg::matmul
