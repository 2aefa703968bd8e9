"""A program that uses a GPU as any tenant does, with nothing but the driver's own library: no toolkit, no framework.

It connects, says on standard output what it sees, and then does what each line of standard input asks. Questions and
answers are one JSON object a line: ``{"do": "spread"}`` gives ``{"sms_used": 32}``, or ``{"error": {...}}``. The end of
standard input, or ``{"do": "end"}``, ends it. Standard library only, so that any user id can run it.

It takes memory with plain allocations only.
"""

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable

_MIB = 1 << 20
_SM_COUNT = 16  # CUdevice_attribute, cuda.h
_MAJOR, _MINOR = 75, 76
_STEPS_MIB = (4096, 512, 64, 8, 2)  # the driver gives device memory in pieces of 2 MiB
_MARKS = 1024  # more than any GPU's highest SM number
_BLOCKS = 8192

# Each block notes the number of the SM it is on and then keeps it busy, so that the other blocks go elsewhere.
_MARK_SM = """
.version 6.3
.target {target}
.address_size 64
.visible .entry mark_sm(.param .u64 marks)
{{
    .reg .u64 %at, %place, %begin, %now;
    .reg .u32 %sm, %one;
    .reg .pred %again;
    ld.param.u64 %at, [marks];
    cvta.to.global.u64 %at, %at;
    mov.u32 %sm, %smid;
    mul.wide.u32 %place, %sm, 4;
    add.u64 %at, %at, %place;
    mov.u32 %one, 1;
    st.global.u32 [%at], %one;
    mov.u64 %begin, %clock64;
busy:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %again, %now, 100000;
    @%again bra busy;
    ret;
}}
"""


class CudaError(Exception):
    """A call of the driver failed."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.told = {"call": call, "code": code, "name": name}


class Gpu:
    """The first GPU that this process may see, with its primary context. Raises CudaError everywhere."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._held: list[ctypes.c_uint64] = []
        began = time.monotonic()
        self._call("cuInit", 0)
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        self.sms_before_context = self._attribute(_SM_COUNT)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self.connect_seconds = time.monotonic() - began

    def look(self) -> dict[str, object]:
        """Return what the driver says that this process has. Memory in MiB."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return {"sms": self._attribute(_SM_COUNT), "free_mib": free.value // _MIB, "total_mib": total.value // _MIB}

    def spread(self) -> dict[str, object]:
        """Run a kernel of many blocks and return on how many SMs they ran, whatever the driver says."""
        marks = self._allocated(_MARKS * 4)
        self._call("cuMemsetD8_v2", marks, ctypes.c_ubyte(0), ctypes.c_size_t(_MARKS * 4))
        self._run_kernel(marks)
        seen = (ctypes.c_uint32 * _MARKS)()
        self._call("cuMemcpyDtoH_v2", seen, marks, ctypes.c_size_t(_MARKS * 4))
        self._call("cuMemFree_v2", marks)
        return {"sms_used": sum(seen)}

    def trespass(self) -> dict[str, object]:
        """Write where nothing is, as a program with a fault does; its context is lost."""
        self._run_kernel(ctypes.c_uint64(16))
        return {"sms_used": 0}

    def fill(self) -> dict[str, object]:
        """Take memory until no piece is given any more; return how much that is."""
        before = time.monotonic()
        taken_mib, ended_by = 0, {}
        for step_mib in _STEPS_MIB:
            try:
                while True:
                    self._held.append(self._allocated(step_mib * _MIB))
                    taken_mib += step_mib
            except CudaError as error:
                ended_by = error.told
        seconds = round(time.monotonic() - before, 3)
        left_mib = self.look()["free_mib"]
        return {"allocated_mib": taken_mib, "left_mib": left_mib, "ended_by": ended_by, "filled_seconds": seconds}

    def release(self) -> dict[str, object]:
        """Give back what ``fill`` took."""
        while self._held:
            self._call("cuMemFree_v2", self._held.pop())
        return self.look()

    def touch(self) -> dict[str, object]:
        """Use the GPU a little: the sign of life."""
        place = self._allocated(_MIB)
        self._call("cuMemsetD8_v2", place, ctypes.c_ubyte(1), ctypes.c_size_t(_MIB))
        self._call("cuCtxSynchronize")
        self._call("cuMemFree_v2", place)
        return {"alive": True}

    def _run_kernel(self, marks: ctypes.c_uint64) -> None:
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), self._kernel_text())
        self._call("cuModuleGetFunction", ctypes.byref(kernel), module, b"mark_sm")
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(marks), ctypes.c_void_p))
        self._call("cuLaunchKernel", kernel, _BLOCKS, 1, 1, 32, 1, 1, 0, None, arguments, None)
        self._call("cuCtxSynchronize")
        self._call("cuModuleUnload", module)

    def _allocated(self, size: int) -> ctypes.c_uint64:
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
        return place

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def _kernel_text(self) -> bytes:
        # The compiler inside the driver takes text for an older chip; CUDA 13 begins at 7.5.
        old = (self._attribute(_MAJOR), self._attribute(_MINOR)) < (7, 5)
        return _MARK_SM.format(target="sm_70" if old else "sm_75").encode()

    def _call(self, name: str, *arguments: object) -> None:
        code = int(getattr(self._library, name)(*arguments))
        if code:
            raise CudaError(name, code, self._name_of(code))

    def _name_of(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return text.value.decode() if text.value else "unknown"


def answer(gpu: Gpu, command: str) -> dict[str, object]:
    """Do one command."""
    commands: dict[str, Callable[[], dict[str, object]]] = {
        "look": gpu.look,
        "spread": gpu.spread,
        "fill": gpu.fill,
        "release": gpu.release,
        "touch": gpu.touch,
        "trespass": gpu.trespass,
    }
    try:
        return commands[command]()
    except CudaError as error:
        return {"error": error.told}


def tell(what: dict[str, object]) -> None:
    """Print one answer."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Connect and answer until the end; return 1 when there was nothing to connect to."""
    try:
        gpu = Gpu()
        tell(
            {
                "pid": os.getpid(),
                "user_id": os.getuid(),
                "connect_seconds": round(gpu.connect_seconds, 3),
                "sms_before_context": gpu.sms_before_context,
                **gpu.look(),
            }
        )
    except CudaError as error:
        tell({"error": error.told})
        return 1
    for line in sys.stdin:
        command = json.loads(line)["do"]
        if command == "end":
            break
        tell(answer(gpu, command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
