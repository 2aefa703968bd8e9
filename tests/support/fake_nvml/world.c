/* Reads the scenario named by FAKE_NVML_SCENARIO; scenario.py writes it and documents its lines. */
#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

World world;
int init_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void read_gpu_line(Gpu *gpu, const char *line) {
  Profile profile = {.known = 1};
  Process process;
  int number;
  if (sscanf(line, "uuid %95s", gpu->uuid) == 1 || sscanf(line, "pci %95s", gpu->pci) == 1) return;
  if (sscanf(line, "name %95[^\n]", gpu->name) == 1 || sscanf(line, "minor %d", &gpu->minor) == 1) return;
  if (sscanf(line, "capability %d %d", &gpu->major_cc, &gpu->minor_cc) == 2) return;
  if (sscanf(line, "cores %d", &gpu->cores) == 1 || sscanf(line, "events %llu", &gpu->events) == 1) return;
  if (sscanf(line, "mig %d %d", &gpu->mig, &gpu->mig_pending) == 2) return;
  if (sscanf(line, "compute_mode %d", &gpu->compute_mode) == 1) return;
  if (sscanf(line, "persistence %d", &gpu->persistence) == 1) return;
  if (sscanf(line, "link %d %d %d %d", &gpu->width, &gpu->width_max, &gpu->generation, &gpu->generation_max) == 4) return;
  if (sscanf(line, "recovery %d", &gpu->recovery) == 1) gpu->has_recovery = 1;
  else if (sscanf(line, "remap %d", &gpu->remap_failed) == 1) gpu->has_remap = 1;
  else if (sscanf(line, "ecc %llu", &gpu->double_bit) == 1) gpu->has_ecc = 1;
  else if (sscanf(line, "memory %llu %llu %llu", &gpu->total, &gpu->reserved, &gpu->used) == 3) {
    gpu->has_memory = 1;
  } else if (sscanf(line, "profile %d %u %u %u %u %u %llu", &number, &profile.id, &profile.slices, &profile.instances,
                    &profile.sms, &profile.engines, &profile.memory_mib) == 7 && number < MAX_PROFILES) {
    gpu->profiles[number] = profile;
  } else if (sscanf(line, "process %u %llu %d", &process.pid, &process.bytes, &process.kind) == 3 &&
             gpu->process_count < MAX_PROCESSES) {
    gpu->processes[gpu->process_count++] = process;
  } else {
    fprintf(stderr, "fake nvml: line not understood: %s", line);
    abort();
  }
}

static void read_line(const char *line) {
  Rule rule;
  Event event;
  int one, other, nvlink, ancestor;
  if (sscanf(line, "driver %95s", world.driver) == 1 || sscanf(line, "cuda %d", &world.cuda) == 1) return;
  if (strncmp(line, "gpu\n", 4) == 0 && world.gpu_count < MAX_GPUS) {
    memset(&world.gpus[world.gpu_count++], 0, sizeof(Gpu));
  } else if (sscanf(line, "fail %d %95s %d", &rule.gpu, rule.call, &rule.value) == 3 && world.failure_count < MAX_RULES) {
    world.failures[world.failure_count++] = rule;
  } else if (sscanf(line, "slow %d %95s %d", &rule.gpu, rule.call, &rule.value) == 3 && world.delay_count < MAX_RULES) {
    world.delays[world.delay_count++] = rule;
  } else if (sscanf(line, "event %d %llu %llu", &event.gpu, &event.type, &event.data) == 3 &&
             world.event_count < MAX_EVENTS) {
    world.events[world.event_count++] = event;
  } else if (sscanf(line, "pair %d %d %d %d", &one, &other, &nvlink, &ancestor) == 4 && one >= 0 && one < MAX_GPUS &&
             other >= 0 && other < MAX_GPUS) {
    world.nvlink[one][other] = world.nvlink[other][one] = nvlink;
    world.ancestor[one][other] = world.ancestor[other][one] = ancestor;
  } else if (world.gpu_count > 0) {
    read_gpu_line(&world.gpus[world.gpu_count - 1], line);
  } else {
    fprintf(stderr, "fake nvml: line not understood: %s", line);
    abort();
  }
}

static void read_world(void) {
  const char *path = getenv("FAKE_NVML_SCENARIO");
  char line[512];
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) {
    fprintf(stderr, "fake nvml: FAKE_NVML_SCENARIO must name a readable file\n");
    abort();
  }
  world.cuda = world.gpu_count = world.failure_count = world.delay_count = world.event_count = 0;
  memset(world.nvlink, UNTOLD, sizeof world.nvlink);
  memset(world.ancestor, UNTOLD, sizeof world.ancestor);
  while (fgets(line, sizeof line, file)) read_line(line);
  fclose(file);
}

void pause_ms(int milliseconds) {
  struct timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  nanosleep(&time, NULL);
}

int rule_for(const Rule *rules, int count, const char *call, int gpu, int *value) {
  for (int i = 0; i < count; i++) {
    int about_this_gpu = rules[i].gpu == gpu || rules[i].gpu == -1;
    int about_this_call = strcmp(rules[i].call, call) == 0 || (strcmp(rules[i].call, "*") == 0 && rules[i].gpu == gpu);
    if (about_this_gpu && about_this_call) {
      *value = rules[i].value;
      return 1;
    }
  }
  return 0;
}

int enter(const char *call, int gpu) {
  int value, slow;
  pthread_mutex_lock(&lock);
  read_world();
  slow = rule_for(world.delays, world.delay_count, call, gpu, &value);
  if (slow) {
    pthread_mutex_unlock(&lock);
    pause_ms(value);
    pthread_mutex_lock(&lock);
    read_world();
  }
  int result = SUCCESS;
  if (rule_for(world.failures, world.failure_count, call, gpu, &value)) result = value;
  else if (init_count == 0 && strcmp(call, "nvmlInitWithFlags") != 0) result = UNINITIALIZED;
  else if (gpu >= world.gpu_count) result = NOT_FOUND;
  if (result != SUCCESS) pthread_mutex_unlock(&lock);
  return result;
}

int leave(int result) {
  pthread_mutex_unlock(&lock);
  return result;
}
