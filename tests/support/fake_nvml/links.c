/* How the GPUs are connected: what a scenario says of each pair. */
#include "world.h"

static int tell(int told, unsigned *value) {
  if (told == UNTOLD) return NOT_SUPPORTED;
  *value = (unsigned)told;
  return SUCCESS;
}

int nvmlDeviceGetP2PStatus(Device *device, Device *other, unsigned what, unsigned *status) {
  enum { NVLINK = 2 };
  ENTER_GPU("nvmlDeviceGetP2PStatus");
  (void)gpu;
  return leave(what == NVLINK ? tell(world.nvlink[device->index][other->index], status) : NOT_SUPPORTED);
}

int nvmlDeviceGetTopologyCommonAncestor(Device *device, Device *other, unsigned *level) {
  ENTER_GPU("nvmlDeviceGetTopologyCommonAncestor");
  (void)gpu;
  return leave(tell(world.ancestor[device->index][other->index], level));
}
