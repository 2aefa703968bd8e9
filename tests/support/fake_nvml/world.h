/* What a scenario says, and how a call enters and leaves it. Shared by the files of the fake library. */
#ifndef FAKE_NVML_WORLD_H
#define FAKE_NVML_WORLD_H

enum {
  SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
  TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};
enum { UNTOLD = -1 };
enum { MAX_GPUS = 16, MAX_PROFILES = 18, MAX_RULES = 64, MAX_EVENTS = 512, MAX_PROCESSES = 64, TEXT = 96 };

typedef unsigned long long u64;
typedef struct { unsigned id, slices, instances, sms, engines; u64 memory_mib; int known; } Profile;
typedef struct { unsigned pid; u64 bytes; int kind; } Process; /* 0 compute, 1 client of MPS, 2 graphics */
typedef struct {
  char uuid[TEXT], name[TEXT], pci[TEXT];
  int minor, major_cc, minor_cc, cores, mig, mig_pending, compute_mode, persistence;
  int has_recovery, recovery, has_remap, remap_failed, has_ecc;
  int has_memory, width, width_max, generation, generation_max;
  u64 total, reserved, used, events, double_bit;
  Profile profiles[MAX_PROFILES];
  Process processes[MAX_PROCESSES];
  int process_count;
} Gpu;
typedef struct { int gpu; char call[TEXT]; int value; } Rule; /* gpu -1: any, also calls that are about no GPU */
typedef struct { int gpu; u64 type, data; } Event;
typedef struct {
  char driver[TEXT];
  int cuda, gpu_count, failure_count, delay_count, event_count;
  Gpu gpus[MAX_GPUS];
  Rule failures[MAX_RULES], delays[MAX_RULES];
  Event events[MAX_EVENTS];
  int nvlink[MAX_GPUS][MAX_GPUS], ancestor[MAX_GPUS][MAX_GPUS]; /* NVML's numbers; UNTOLD: not supported */
} World;

typedef struct { int index; } Device; /* what a handle points to; one for each index, for the life of the process */

#define ENTER(call) do { int code_ = enter(call, -1); if (code_ != SUCCESS) return code_; } while (0)
#define ENTER_GPU(call) \
  do { int code_ = enter(call, device->index); if (code_ != SUCCESS) return code_; } while (0); \
  Gpu *gpu = &world.gpus[device->index]

extern World world; /* valid between enter and leave */
extern int init_count;

/* Reads the scenario afresh and says whether the call may go on. On SUCCESS the caller must call leave. */
int enter(const char *call, int gpu);
int leave(int result);
/* Finds the first rule about this call on this GPU. */
int rule_for(const Rule *rules, int count, const char *call, int gpu, int *value);
void pause_ms(int milliseconds);

#endif
