#include <cstdio>
#include <cuda_runtime.h>
extern __shared__ char sm[];
__global__ void __launch_bounds__(512) k(int *p){ sm[threadIdx.x]=1; if(p) *p=sm[0]; }
int main(){ for(int bytes: {197000,100000,49000}) for(int c:{1,2,4,8,16}){ cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,bytes); if(c>8) cudaFuncSetAttribute(k,cudaFuncAttributeNonPortableClusterSizeAllowed,1);
 cudaLaunchConfig_t cfg={}; cfg.gridDim=dim3(c*64); cfg.blockDim=dim3(512); cfg.dynamicSmemBytes=bytes; cudaLaunchAttribute a[1]; a[0].id=cudaLaunchAttributeClusterDimension; a[0].val.clusterDim.x=c; a[0].val.clusterDim.y=1; a[0].val.clusterDim.z=1; cfg.attrs=a; cfg.numAttrs=1; int n=-1; auto e=cudaOccupancyMaxActiveClusters(&n,k,&cfg); printf("bytes %d cluster %d: %d clusters, %d blocks (%s)\n",bytes,c,n,n*c,cudaGetErrorString(e)); } }
