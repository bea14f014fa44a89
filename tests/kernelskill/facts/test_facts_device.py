from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from kernelskill.facts.device import DeviceError, cards_folder, detect_device, load_device

CARDS = sorted(path.stem for path in cards_folder().glob("*.yaml"))


def test_cards_exist():
    assert CARDS == ["a100", "h100", "h200", "rtx4090"]


@pytest.mark.parametrize("name", CARDS)
def test_card_is_complete_sourced_and_consistent(name):
    card = load_device(name)
    assert len(card.sources) == 13 + (card.measured_dram_bytes_per_s is not None)
    assert all(len(source.split(": ", 1)[1]) > 10 for source in card.sources)
    assert card.shared_bytes_per_block < card.shared_bytes_per_sm < card.l1_shared_bytes_per_sm
    lanes = {80: 64, 89: 128, 90: 128}[10 * card.compute_capability[0] + card.compute_capability[1]]
    assert card.fp32_flops_per_s == pytest.approx(card.sm_count * lanes * 2 * card.sm_clock_hz, rel=0.01)
    assert card.measured_dram_bytes_per_s is None or 0.8 < card.measured_dram_bytes_per_s / card.dram_bytes_per_s < 1
    assert card.tf32_flops_per_s <= card.fp16_flops_per_s / 2 * 1.001


def test_h200_figures():
    card = load_device("H200")
    assert (card.name, card.arch, card.sm_count, card.l2_bytes) == ("NVIDIA H200", "sm_90", 132, 60 << 20)
    assert (card.shared_bytes_per_sm, card.shared_bytes_per_block, card.l1_shared_bytes_per_sm) == (
        228 << 10,
        227 << 10,
        256 << 10,
    )
    assert (card.dram_bytes_per_s, card.measured_dram_bytes_per_s) == (4.8e12, 4.228e12)


def test_unknown_card_suggests_one():
    with pytest.raises(DeviceError) as caught:
        load_device("h20")
    assert (caught.value.message, caught.value.hint) == ("no device card 'h20'", "did you mean 'h200'?")
    with pytest.raises(DeviceError) as caught:
        load_device("tpu")
    assert "a100, h100, h200, rtx4090" in caught.value.hint


def card_file(tmp_path: Path, old: str, new: str) -> Path:
    text = (cards_folder() / "h200.yaml").read_text()
    assert text.count(old) == 1
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("  l2_bytes:", "  l2_byte:", "missing figure or key 'l2_bytes'", ""),
        ("name: NVIDIA H200\n", "nmae: NVIDIA H200\nname: x\n", "unknown figure or key 'nmae'", "did you mean 'name'?"),
        ("value: 62914560", "value: many", "'figures.l2_bytes.value.int'", ""),
        (
            '{value: 62914560, source: "measured: cudaDeviceProp.l2CacheSize on an H200, 60 MiB"}',
            "{value: 62914560}",
            "missing figure or key 'figures.l2_bytes.source'",
            "",
        ),
    ],
)
def test_broken_card_file(tmp_path, old, new, message, hint):
    path = card_file(tmp_path, old, new)
    with pytest.raises(DeviceError) as caught:
        load_device(path)
    assert str(path) in str(caught.value)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_card_file_that_is_not_yaml_or_not_there(tmp_path):
    path = card_file(tmp_path, "figures:\n", "figures: [\n")
    with pytest.raises(DeviceError, match=r"mine\.yaml:\d+:\d+: not YAML"):
        load_device(str(path))
    with pytest.raises(DeviceError, match="no such device card"):
        load_device(tmp_path / "none.yaml")


class NVMLError(Exception):
    pass


def fake_driver(monkeypatch, name="NVIDIA H200", capability=(9, 0), count=1, works=True):
    """NVML as nvidia-ml-py presents it, for a machine with this GPU."""
    nvml = types.ModuleType("pynvml")
    calls: list[str] = []

    def init():
        calls.append("init")
        if not works:
            raise NVMLError("Driver Not Loaded")

    nvml.NVMLError = NVMLError
    nvml.nvmlInit = init
    nvml.nvmlShutdown = lambda: calls.append("shutdown")
    nvml.nvmlDeviceGetCount = lambda: count
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetName = lambda handle: name
    nvml.nvmlDeviceGetCudaComputeCapability = lambda handle: capability
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return calls


@pytest.mark.parametrize(
    ("name", "capability", "card"),
    [
        ("NVIDIA H200", (9, 0), "h200"),
        (b"NVIDIA A100-SXM4-80GB", (8, 0), "a100"),
        ("NVIDIA GeForce RTX 4090", (8, 9), "rtx4090"),
    ],
)
def test_detected_gpu_has_its_card(monkeypatch, name, capability, card):
    calls = fake_driver(monkeypatch, name, capability)
    assert detect_device() == load_device(card)
    assert calls == ["init", "shutdown"]


def test_no_driver_or_no_gpu_is_none(monkeypatch):
    fake_driver(monkeypatch, works=False)
    assert detect_device() is None
    fake_driver(monkeypatch, count=0)
    assert detect_device() is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert detect_device() is None


def test_gpu_without_card_says_what_to_write(monkeypatch):
    fake_driver(monkeypatch, "NVIDIA L4", (8, 9))
    with pytest.raises(DeviceError) as caught:
        detect_device()
    assert caught.value.message == "the GPU 'NVIDIA L4' (compute capability 8.9) has no device card"
    assert "h200.yaml" in caught.value.hint
