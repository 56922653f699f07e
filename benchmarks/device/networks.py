"""Networks of the published runs, by hand in plain torch: layers and sizes as in torchvision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """A path beside another, added up; with an activation behind where there is one."""

    def __init__(self, path: nn.Module, beside: nn.Module | None, last: nn.Module | None) -> None:
        super().__init__()
        self.path, self.beside, self.last = path, beside, last

    def forward(self, x: Tensor) -> Tensor:
        other: Tensor = x if self.beside is None else self.beside(x)
        out: Tensor = self.path(x)
        if self.last is None:
            return other + out
        out += other
        made: Tensor = self.last(out)
        return made


def conv(a: int, b: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False)


def normed(layer: nn.Conv2d, *more: nn.Module) -> list[nn.Module]:
    return [layer, nn.BatchNorm2d(layer.out_channels), *more]


def relu() -> nn.ReLU:
    return nn.ReLU(inplace=True)


def vgg16() -> nn.Module:
    layers: list[nn.Module] = []
    wide = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(wide, width, 3, padding=1), relu()]
            wide = width
        layers.append(nn.MaxPool2d(2, 2))
    head = [nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout()]
    head += [nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *head)


def resnet101() -> nn.Module:
    layers = [*normed(conv(3, 64, 7, 2), relu()), nn.MaxPool2d(3, 2, 1)]
    wide = 64
    for width, count, step in ((64, 3, 1), (128, 4, 2), (256, 23, 2), (512, 3, 2)):
        for place in range(count):
            stride, out = (step if place == 0 else 1), 4 * width
            path = nn.Sequential(
                *normed(conv(wide, width, 1), relu()),
                *normed(conv(width, width, 3, stride), relu()),
                *normed(conv(width, out, 1)),
            )
            beside = nn.Sequential(*normed(conv(wide, out, 1, stride))) if place == 0 else None
            layers.append(Residual(path, beside, relu()))
            wide = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 1000))


def mobilenet_v2() -> nn.Module:
    layers = normed(conv(3, 32, 3, 2), nn.ReLU6(True))
    wide = 32
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for times, out, count, step in (*blocks, (6, 160, 3, 2), (6, 320, 1, 1)):
        for place in range(count):
            stride, hidden = (step if place == 0 else 1), wide * times
            path: list[nn.Module] = []
            if times != 1:
                path += normed(conv(wide, hidden, 1), nn.ReLU6(True))
            path += normed(conv(hidden, hidden, 3, stride, hidden), nn.ReLU6(True))
            path += normed(conv(hidden, out, 1))
            one = nn.Sequential(*path)
            layers.append(Residual(one, None, None) if stride == 1 and wide == out else one)
            wide = out
    layers += normed(conv(wide, 1280, 1), nn.ReLU6(True))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers, *head)


def mnasnet() -> nn.Module:
    layers = normed(conv(3, 32, 3, 2), relu())
    layers += normed(conv(32, 32, 3, 1, 32), relu())
    layers += normed(conv(32, 16, 1))
    wide = 16
    blocks = ((24, 3, 2, 3, 3), (40, 5, 2, 3, 3), (80, 5, 2, 6, 3))
    for out, kernel, step, times, count in (
        *blocks,
        (96, 3, 1, 6, 2),
        (192, 5, 2, 6, 4),
        (320, 3, 1, 6, 1),
    ):
        for place in range(count):
            stride, hidden = (step if place == 0 else 1), wide * times
            path = nn.Sequential(
                *normed(conv(wide, hidden, 1), relu()),
                *normed(conv(hidden, hidden, kernel, stride, hidden), relu()),
                *normed(conv(hidden, out, 1)),
            )
            layers.append(Residual(path, None, None) if stride == 1 and wide == out else path)
            wide = out
    layers += normed(conv(wide, 1280, 1), relu())
    return nn.Sequential(*layers, Mean(), nn.Dropout(0.2, True), nn.Linear(1280, 10))


class Mean(nn.Module):
    """The mean of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean([2, 3])


def regnet_x_400mf() -> nn.Module:
    layers = normed(conv(3, 32, 3, 2), relu())
    wide = 32
    for out, count in ((32, 1), (64, 2), (160, 7), (400, 12)):
        for place in range(count):
            stride = 2 if place == 0 else 1
            path = nn.Sequential(
                *normed(conv(wide, out, 1), relu()),
                *normed(conv(out, out, 3, stride, out // 16), relu()),
                *normed(conv(out, out, 1)),
            )
            beside = nn.Sequential(*normed(conv(wide, out, 1, stride))) if place == 0 else None
            layers.append(Sum(path, beside))
            wide = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 1000))


class Sum(Residual):
    """The same, into a tensor of its own."""

    def __init__(self, path: nn.Module, beside: nn.Module | None) -> None:
        super().__init__(path, beside, relu())

    def forward(self, x: Tensor) -> Tensor:
        other = x if self.beside is None else self.beside(x)
        assert self.last is not None
        made: Tensor = self.last(other + self.path(x))
        return made


class ChannelNorm(nn.LayerNorm):
    """Norm over channels of pictures."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        return super().forward(x).permute(0, 3, 1, 2)


class Permute(nn.Module):
    """Axes in another order."""

    def __init__(self, *axes: int) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.axes)


class ScaledDrop(nn.Module):
    """A path that is scaled, left out for some samples, and added."""

    def __init__(self, path: nn.Module, wide: int, chance: float) -> None:
        super().__init__()
        self.path, self.chance = path, chance
        self.scale = nn.Parameter(torch.ones(wide, 1, 1) * 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.scale * self.path(x)
        if self.chance:
            noise = torch.empty((len(x), 1, 1, 1), dtype=x.dtype, device=x.device)
            noise = noise.bernoulli_(1 - self.chance).div_(1 - self.chance)
            out = out * noise
        out += x
        return out


def convnext_tiny() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
    done, stages = 0, ((96, 192, 3), (192, 384, 3), (384, 768, 9), (768, 0, 3))
    for wide, after, count in stages:
        for _ in range(count):
            path = nn.Sequential(
                nn.Conv2d(wide, wide, 7, padding=3, groups=wide),
                Permute(0, 2, 3, 1),
                nn.LayerNorm(wide, eps=1e-6),
                nn.Linear(wide, 4 * wide),
                nn.GELU(),
                nn.Linear(4 * wide, wide),
                Permute(0, 3, 1, 2),
            )
            layers.append(ScaledDrop(path, wide, 0.1 * done / 17))
            done += 1
        if after:
            layers += [ChannelNorm(wide, eps=1e-6), nn.Conv2d(wide, after, 2, 2)]
    head = [
        nn.AdaptiveAvgPool2d(1),
        ChannelNorm(768, eps=1e-6),
        nn.Flatten(1),
        nn.Linear(768, 1000),
    ]
    return nn.Sequential(*layers, *head)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ConvNeXtTiny": convnext_tiny,
    "MnasNet": mnasnet,
    "MobileNetV2": mobilenet_v2,
    "RegNetX400MF": regnet_x_400mf,
    "ResNet101": resnet101,
    "VGG16": vgg16,
}
