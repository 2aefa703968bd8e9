"""NVIDIA's XID codes: what each means and what it says about the GPU.

Source: NVIDIA, "Analyzing Xid errors with the Xid catalog" (docs.nvidia.com/deploy/xid-errors, Ampere and newer; as of
October 2025), its immediate actions: "restart the application" is :attr:`XidClass.APPLICATION`, "ignore" is
:attr:`XidClass.REPORT`, "reset the GPU" and "restart" are :attr:`XidClass.FATAL`. 173 and above come from the open
kernel modules (R595). Where that would take a GPU for too little or too long, the entry says why it differs. Codes that
the catalogue calls unused, and all that are not listed, are unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cta_group_core.health.evidence import Repair


class XidClass(StrEnum):
    """What an XID says about the GPU it came from."""

    APPLICATION = "application"
    """A program was at fault, or is the only victim. The GPU goes on."""
    REPORT = "report"
    """Worth telling a person. The GPU goes on."""
    SUSPECT = "suspect"
    """The code alone does not tell: no new work until the probe and the driver's recovery action have decided."""
    FATAL = "fatal"
    """No new work until the GPU was repaired."""


@dataclass(frozen=True, slots=True)
class XidRule:
    """What is done about one code."""

    code: int
    meaning: str
    """In words, for people; begins in lower case."""
    xid_class: XidClass
    repair: Repair = Repair.NONE
    """What a fatal one needs; for a suspect one, what it needs once it is confirmed."""
    calls_may_hang: bool = False
    """Calls to the driver about this GPU may never come back: leave it alone until it was repaired."""
    why: str = ""
    """Why the class is not what the catalogue's action alone would give."""

    @property
    def asks_the_driver(self) -> bool:
        """Tell whether the GPU's recovery action should be read at once, without waiting for the next poll."""
        return self.xid_class is XidClass.SUSPECT or self.code == RECOVERY_ACTION_CHANGED

    @property
    def asks_mps(self) -> bool:
        """Tell whether the MPS daemon should be asked at once: a fault of one client may have ended all of them."""
        return self.xid_class is XidClass.APPLICATION


RECOVERY_ACTION_CHANGED: Final = 154

_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO_DECODERS = (68, 83, 84, 88, 89, 96, 97, 98)
_JPEG_DECODERS = (82, *range(99, 106))
_OPTICAL_FLOW = (86, 139)
_NVLINK5_UNITS = {144: "SAW", 145: "RLW", 146: "TLW", 147: "TREX", 148: "NVLPW_CTRL", 149: "NETIR", 150: "MSE"}
"""The units of NVLink 5 by the catalogue's own short names."""


def _engines(name: str, codes: tuple[int, ...]) -> Iterator[XidRule]:
    """One code for each engine of a kind, in their order."""
    return (XidRule(code, f"{name} {number} failed", XidClass.APPLICATION) for number, code in enumerate(codes))


_APPLICATION = (
    XidRule(8, "a program's work did not end in time", XidClass.APPLICATION),
    XidRule(11, "a program's command stream is invalid or corrupted", XidClass.APPLICATION),
    XidRule(13, "an exception in a program's kernel, often an access outside of an array", XidClass.APPLICATION),
    XidRule(25, "a program's command stream has an illegal entry", XidClass.APPLICATION),
    XidRule(31, "a program used memory that is not mapped", XidClass.APPLICATION),
    XidRule(32, "a program's command stream reached the GPU corrupted", XidClass.APPLICATION),
    XidRule(
        43,
        "a program was ended by a fault of its own",
        XidClass.APPLICATION,
        why="listed as ignorable: the program ends and the GPU stays healthy",
    ),
    XidRule(
        45,
        "a program's channels were taken down, because it ended or because of an earlier error",
        XidClass.APPLICATION,
        why="the catalogue points to the XID before it, which has its own rule",
    ),
    XidRule(60, "the video processor failed", XidClass.APPLICATION),
    XidRule(69, "a program used an engine in a way that its class does not allow", XidClass.APPLICATION),
    XidRule(80, "a program's commands were corrupted on their way to the GPU", XidClass.APPLICATION),
    XidRule(
        94,
        "an uncorrectable memory error that was contained in one program",
        XidClass.APPLICATION,
        why="the GPU goes on, but under MPS every client of the GPU ends with the one that was hit",
    ),
    XidRule(174, "the driver ended a program", XidClass.APPLICATION),
    *_engines("copy engine", _COPY_ENGINES),
    *_engines("video decoder", _VIDEO_DECODERS),
    *_engines("JPEG decoder", _JPEG_DECODERS),
    *_engines("optical flow engine", _OPTICAL_FLOW),
)

_REPORT = (
    XidRule(14, "an error that somebody injected for a test", XidClass.REPORT),
    XidRule(37, "the driver's firmware met a command that it does not know", XidClass.REPORT),
    XidRule(38, "the watchdog of the driver's firmware ran out", XidClass.REPORT),
    XidRule(44, "a fault while the GPU switched between programs", XidClass.REPORT),
    XidRule(63, "rows of memory are set aside at the next reset of the GPU", XidClass.REPORT),
    XidRule(66, "the driver used a register that it may not", XidClass.REPORT),
    XidRule(67, "an access of the driver failed the firmware's check", XidClass.REPORT),
    XidRule(
        78,
        "a virtual GPU could not be started",
        XidClass.REPORT,
        why="it is about a guest's virtual GPU, and asks for newer software, not for a repair",
    ),
    XidRule(92, "corrected memory errors come at a high rate", XidClass.REPORT),
    XidRule(93, "the board's settings memory has used up its writes", XidClass.REPORT),
    XidRule(106, "a test message of the management bus", XidClass.REPORT),
    XidRule(107, "a silent test message of the management bus", XidClass.REPORT),
    XidRule(108, "another GPU's address could not be translated over NVLink", XidClass.REPORT),
    XidRule(121, "the link to the CPU corrected an error", XidClass.REPORT),
    XidRule(137, "a program used another GPU's memory over NVLink that it may not", XidClass.REPORT),
    XidRule(141, "CUDA's fast path failed", XidClass.REPORT),
    XidRule(152, "a deep-learning accelerator used memory that is not mapped", XidClass.REPORT),
    XidRule(153, "a deep-learning accelerator did not answer in time", XidClass.REPORT),
    XidRule(
        RECOVERY_ACTION_CHANGED,
        "the driver asks for another recovery action than before",
        XidClass.REPORT,
        why="it announces the recovery action, and that decides",
    ),
    XidRule(157, "a broken resource could not be set aside", XidClass.REPORT),
    XidRule(160, "a memory channel is set aside", XidClass.REPORT),
    XidRule(161, "a memory channel could not be set aside", XidClass.REPORT),
    XidRule(162, "power smoothing works again", XidClass.REPORT),
    XidRule(163, "power smoothing stopped", XidClass.REPORT),
    XidRule(164, "power smoothing is close to the end of its life", XidClass.REPORT),
    XidRule(165, "power smoothing has reached the end of its life", XidClass.REPORT),
    XidRule(176, "the PCIe link corrected an error", XidClass.REPORT),
)

_NO_ACTION_STATED = "the catalogue states no action for it"
_SUSPECT = (
    XidRule(
        54,
        "the board's power cable is not connected",
        XidClass.SUSPECT,
        why="a person must look at the board; whether it still computes is for the probe to tell",
    ),
    XidRule(
        109,
        "switching between programs took too long",
        XidClass.SUSPECT,
        Repair.RESET,
        why="the catalogue asks for a reset, but a program alone can cause it: the probe decides",
    ),
    *(
        XidRule(
            code,
            f"NVLink failed in its unit {unit}",
            XidClass.SUSPECT,
            Repair.RESET,
            why="fatal or not is in details that the event does not carry; the recovery action tells",
        )
        for code, unit in _NVLINK5_UNITS.items()
    ),
    XidRule(
        155,
        "NVLink went down",
        XidClass.SUSPECT,
        Repair.RESET,
        why="also logged when the link is put to sleep on purpose; the recovery action tells",
    ),
    XidRule(
        159,
        "an error on the coherent link to the CPU",
        XidClass.SUSPECT,
        Repair.RESET,
        why="the catalogue makes the reset depend on whether unified memory is in use",
    ),
    *(
        XidRule(code, meaning, XidClass.SUSPECT, Repair.RESET, why=_NO_ACTION_STATED)
        for code, meaning in {
            166: "NVLink carried traffic before its encryption was set up",
            167: "a PCIe request was never answered",
            168: "a part of the GPU's memory is not usable",
            169: "the security controller halted",
            170: "an unexpected event on encrypted NVLink",
            171: "details of an uncorrectable error in the GPU's memory",
            172: "details of an uncorrectable error in the GPU's caches and registers",
            175: "an error in the memory system",
        }.items()
    ),
)

_FATAL = (
    XidRule(46, "the GPU stopped working", XidClass.FATAL, Repair.RESET),
    XidRule(48, "a double-bit memory error that cannot be corrected", XidClass.FATAL, Repair.RESET),
    XidRule(62, "a micro-controller of the GPU halted", XidClass.FATAL, Repair.RESET),
    XidRule(64, "a row of memory could not be set aside", XidClass.FATAL, Repair.RESET),
    XidRule(74, "NVLink to another GPU or switch failed", XidClass.FATAL, Repair.RESET),
    XidRule(79, "the GPU fell off the PCIe bus", XidClass.FATAL, Repair.REBOOT),
    XidRule(95, "a memory error that reached several programs", XidClass.FATAL, Repair.RESET),
    XidRule(110, "a security fault", XidClass.FATAL, Repair.REBOOT, why="its text asks for a cold start of the node"),
    XidRule(119, "the GPU's system processor does not answer", XidClass.FATAL, Repair.RESET, calls_may_hang=True),
    XidRule(120, "the GPU's system processor failed", XidClass.FATAL, Repair.RESET, calls_may_hang=True),
    XidRule(136, "a link could not be trained", XidClass.FATAL, Repair.RESET),
    XidRule(140, "a memory error that escaped the error correction", XidClass.FATAL, Repair.RESET),
    XidRule(143, "the GPU could not be initialised", XidClass.FATAL, Repair.RESET),
    XidRule(151, "keys of confidential computing could not be changed", XidClass.FATAL, Repair.REBOOT),
    XidRule(156, "a broken resource is set aside at the next reset of the GPU", XidClass.FATAL, Repair.RESET),
    XidRule(158, "the GPU met a timeout that it cannot recover from", XidClass.FATAL, Repair.RESET),
)

RULES: Final = (*_APPLICATION, *_REPORT, *_SUSPECT, *_FATAL)
"""Every code that is known."""
