/* How a GPU is and who uses it: the part of the fake library that a poll of its health asks. */
#include <string.h>

#include "world.h"

/* ---- health ---- */
int nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed) {
  ENTER_GPU("nvmlDeviceGetRemappedRows");
  *corrected = *uncorrected = *pending = 0;
  *failed = (unsigned)gpu->remap_failed;
  return leave(gpu->has_remap ? SUCCESS : NOT_SUPPORTED);
}

int nvmlDeviceGetTotalEccErrors(Device *device, unsigned error_type, unsigned counter_type, u64 *count) {
  enum { UNCORRECTED = 1, VOLATILE = 0 };
  ENTER_GPU("nvmlDeviceGetTotalEccErrors");
  *count = error_type == UNCORRECTED && counter_type == VOLATILE ? gpu->double_bit : 0;
  return leave(gpu->has_ecc ? SUCCESS : NOT_SUPPORTED);
}

typedef union { double d; unsigned ui; unsigned long ul; u64 ull; long long sll; int si; unsigned short us; } Value;
typedef struct { unsigned id, scope; long long at, latency; unsigned type; int code; Value value; } Field;

/* The call as a whole works; each field has a code of its own. */
int nvmlDeviceGetFieldValues(Device *device, int count, Field *fields) {
  enum { RECOVERY_ACTION = 230, UNSIGNED_INT = 1 };
  ENTER_GPU("nvmlDeviceGetFieldValues");
  for (int i = 0; i < count; i++) {
    fields[i].type = UNSIGNED_INT;
    fields[i].value.ui = (unsigned)gpu->recovery;
    fields[i].code = fields[i].id == RECOVERY_ACTION && gpu->has_recovery ? SUCCESS : NOT_SUPPORTED;
  }
  return leave(SUCCESS);
}

/* ---- processes ---- */
typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } ProcessV2;
static int list_processes(const Gpu *gpu, int kind, unsigned *count, ProcessV2 *list) {
  unsigned room = *count;
  *count = 0;
  for (int i = 0; i < gpu->process_count; i++) {
    if (gpu->processes[i].kind != kind) continue;
    if (list && *count < room) list[*count] = (ProcessV2){gpu->processes[i].pid, gpu->processes[i].bytes, ~0u, ~0u};
    (*count)++;
  }
  return *count > (list ? room : 0) ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, ProcessV2 *list) {
  ENTER_GPU("nvmlDeviceGetComputeRunningProcesses_v3");
  return leave(list_processes(gpu, 0, count, list));
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *device, unsigned *count, ProcessV2 *list) {
  ENTER_GPU("nvmlDeviceGetMPSComputeRunningProcesses_v3");
  return leave(list_processes(gpu, 1, count, list));
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *count, ProcessV2 *list) {
  ENTER_GPU("nvmlDeviceGetGraphicsRunningProcesses_v3");
  return leave(list_processes(gpu, 2, count, list));
}
