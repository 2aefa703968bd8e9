/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests of the adapter with the real Python binding.
 *
 * It answers from the text file named by FAKE_NVML_SCENARIO, read anew at every call, so that a test can change the
 * world under a running process. Only structure layouts and return codes follow NVIDIA's public header; the rest is
 * this project's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

typedef struct { int registered[MAX_GPUS]; u64 masks[MAX_GPUS]; int next_event; } EventSet;

static Device devices[MAX_GPUS];

static int copy_text(char *to, unsigned size, const char *text) {
  if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
  strcpy(to, text);
  return SUCCESS;
}

/* ---- library ---- */
int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  ENTER("nvmlInitWithFlags");
  for (int i = 0; i < MAX_GPUS; i++) devices[i].index = i;
  init_count++;
  return leave(SUCCESS);
}

int nvmlShutdown(void) {
  ENTER("nvmlShutdown");
  init_count--;
  return leave(SUCCESS);
}

const char *nvmlErrorString(int code) {
  (void)code;
  return "error of the fake library";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  ENTER("nvmlSystemGetDriverVersion");
  return leave(copy_text(text, size, world.driver));
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  ENTER("nvmlSystemGetCudaDriverVersion_v2");
  *version = world.cuda;
  return leave(SUCCESS);
}

/* ---- handles ---- */
int nvmlDeviceGetCount_v2(unsigned *count) {
  ENTER("nvmlDeviceGetCount_v2");
  *count = (unsigned)world.gpu_count;
  return leave(SUCCESS);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **handle) {
  int code = enter("nvmlDeviceGetHandleByIndex_v2", (int)index);
  if (code != SUCCESS) return code == NOT_FOUND ? INVALID_ARGUMENT : code;
  *handle = &devices[index];
  return leave(SUCCESS);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **handle) {
  int found = -1, code;
  ENTER("nvmlDeviceGetHandleByUUID");
  for (int i = 0; i < world.gpu_count; i++) if (strcmp(world.gpus[i].uuid, uuid) == 0) found = i;
  leave(SUCCESS);
  if (found < 0) return NOT_FOUND;
  code = enter("nvmlDeviceGetHandleByUUID", found);
  if (code != SUCCESS) return code;
  *handle = &devices[found];
  return leave(SUCCESS);
}

/* ---- facts ---- */
int nvmlDeviceGetUUID(Device *device, char *text, unsigned size) {
  ENTER_GPU("nvmlDeviceGetUUID");
  return leave(copy_text(text, size, gpu->uuid));
}

int nvmlDeviceGetName(Device *device, char *text, unsigned size) {
  ENTER_GPU("nvmlDeviceGetName");
  return leave(copy_text(text, size, gpu->name));
}

#define NUMBER(call, expression, supported) \
  int call(Device *device, unsigned *value) { \
    ENTER_GPU(#call); \
    *value = (unsigned)(expression); \
    return leave((supported) ? SUCCESS : NOT_SUPPORTED); \
  }

NUMBER(nvmlDeviceGetMinorNumber, gpu->minor, 1)
NUMBER(nvmlDeviceGetNumGpuCores, gpu->cores, gpu->cores > 0)
NUMBER(nvmlDeviceGetPersistenceMode, gpu->persistence, 1)
NUMBER(nvmlDeviceGetPerformanceState, 0, gpu != NULL)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, gpu->width, gpu->width > 0)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, gpu->width_max, gpu->width > 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, gpu->generation, gpu->width > 0)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, gpu->generation_max, gpu->width > 0)

int nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
  ENTER_GPU("nvmlDeviceGetCudaComputeCapability");
  *major = gpu->major_cc;
  *minor = gpu->minor_cc;
  return leave(SUCCESS);
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
  ENTER_GPU("nvmlDeviceGetMigMode");
  *current = (unsigned)gpu->mig;
  *pending = (unsigned)gpu->mig_pending;
  for (int i = 0; i < MAX_PROFILES; i++) if (gpu->profiles[i].known) return leave(SUCCESS);
  return leave(NOT_SUPPORTED);
}

typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryV2;
int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
  ENTER_GPU("nvmlDeviceGetMemoryInfo_v2");
  if (memory->version != (sizeof *memory | 2u << 24)) return leave(ARGUMENT_VERSION_MISMATCH);
  u64 left = gpu->total - gpu->reserved - gpu->used;
  *memory = (MemoryV2){memory->version, gpu->total, gpu->reserved, left, gpu->used};
  return leave(gpu->has_memory ? SUCCESS : NOT_SUPPORTED);
}

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
  ENTER_GPU("nvmlDeviceGetPciInfo_v3");
  memset(pci, 0, sizeof *pci);
  sscanf(gpu->pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
  return leave(copy_text(pci->bus_id, sizeof pci->bus_id, gpu->pci));
}

/* ---- GPU instance profiles ---- */
typedef struct { unsigned id, p2p, slices, instances, sms, engines, dec, enc, jpeg, ofa; u64 memory_mib; } ProfileV1;
typedef struct {
  unsigned version, id, p2p, slices, instances, sms, engines, dec, enc, jpeg, ofa;
  u64 memory_mib;
  char name[96];
} ProfileV2;

int nvmlDeviceGetGpuInstanceProfileInfo(Device *device, unsigned number, ProfileV1 *info) {
  ENTER_GPU("nvmlDeviceGetGpuInstanceProfileInfo");
  if (number >= MAX_PROFILES) return leave(INVALID_ARGUMENT);
  Profile p = gpu->profiles[number];
  *info = (ProfileV1){p.id, 0, p.slices, p.instances, p.sms, p.engines, 0, 0, 0, 0, p.memory_mib};
  return leave(p.known ? SUCCESS : NOT_SUPPORTED);
}

int nvmlDeviceGetGpuInstanceProfileInfoV(Device *device, unsigned number, ProfileV2 *info) {
  ENTER_GPU("nvmlDeviceGetGpuInstanceProfileInfoV");
  if (number >= MAX_PROFILES) return leave(INVALID_ARGUMENT);
  Profile p = gpu->profiles[number];
  *info = (ProfileV2){0, p.id, 0, p.slices, p.instances, p.sms, p.engines, 0, 0, 0, 0, p.memory_mib, "MIG"};
  return leave(p.known ? SUCCESS : NOT_SUPPORTED);
}

/* ---- events: those of before the set was made are lost, as with the real library ---- */
typedef struct { Device *device; u64 type, data; unsigned gpu_instance, compute_instance; } EventData;

int nvmlDeviceGetSupportedEventTypes(Device *device, u64 *types) {
  ENTER_GPU("nvmlDeviceGetSupportedEventTypes");
  *types = gpu->events;
  return leave(SUCCESS);
}

int nvmlEventSetCreate(EventSet **set) {
  ENTER("nvmlEventSetCreate");
  *set = calloc(1, sizeof **set);
  (*set)->next_event = world.event_count;
  return leave(SUCCESS);
}

int nvmlDeviceRegisterEvents(Device *device, u64 types, EventSet *set) {
  ENTER_GPU("nvmlDeviceRegisterEvents");
  if (types & ~gpu->events) return leave(NOT_SUPPORTED);
  set->registered[device->index] = 1;
  set->masks[device->index] = types;
  return leave(SUCCESS);
}

static int take_event(EventSet *set, EventData *data) {
  int value;
  for (int i = 0; i < world.gpu_count; i++)
    if (set->registered[i] && rule_for(world.failures, world.failure_count, "*", i, &value) && value == GPU_IS_LOST)
      return GPU_IS_LOST;
  while (set->next_event < world.event_count) {
    Event event = world.events[set->next_event++];
    if (!set->registered[event.gpu] || !(set->masks[event.gpu] & event.type)) continue;
    *data = (EventData){&devices[event.gpu], event.type, event.data, ~0u, ~0u};
    return SUCCESS;
  }
  return TIMEOUT;
}

int nvmlEventSetWait_v2(EventSet *set, EventData *data, unsigned timeout_ms) {
  enum { STEP_MS = 5 };
  for (unsigned waited = 0;; waited += STEP_MS) {
    ENTER("nvmlEventSetWait_v2");
    int code = leave(take_event(set, data));
    if (code != TIMEOUT || waited >= timeout_ms) return code;
    pause_ms(STEP_MS);
  }
}

int nvmlEventSetFree(EventSet *set) {
  ENTER("nvmlEventSetFree");
  free(set);
  return leave(SUCCESS);
}
