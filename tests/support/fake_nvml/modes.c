/* Compute modes. A change is kept in a file beside the scenario, because processes come and go and the driver stays. */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static void modes_path(char *path, size_t size) { snprintf(path, size, "%s.modes", getenv("FAKE_NVML_SCENARIO")); }

static int mode_of(int gpu, int unchanged) {
  char path[4096];
  int index, mode, found = unchanged;
  modes_path(path, sizeof path);
  FILE *file = fopen(path, "r");
  if (!file) return unchanged;
  while (fscanf(file, "%d %d", &index, &mode) == 2) if (index == gpu) found = mode;
  fclose(file);
  return found;
}

int nvmlDeviceGetComputeMode(Device *device, unsigned *mode) {
  int code = enter("nvmlDeviceGetComputeMode", device->index);
  if (code != SUCCESS) return code;
  *mode = (unsigned)mode_of(device->index, world.gpus[device->index].compute_mode);
  return leave(SUCCESS);
}

int nvmlDeviceSetComputeMode(Device *device, unsigned mode) {
  char path[4096];
  int code = enter("nvmlDeviceSetComputeMode", device->index);
  if (code != SUCCESS) return code;
  modes_path(path, sizeof path);
  FILE *file = fopen(path, "a");
  if (!file) return leave(UNKNOWN);
  fprintf(file, "%d %u\n", device->index, mode);
  return leave(fclose(file) == 0 ? SUCCESS : UNKNOWN);
}
