#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/epilogue.h"
#include "../common/plane.h"
#include "microkernel.h"
#include "../common/planes.h"
/* Depthwise convolutions of 3x3 by planes: two taps an instruction (SMLAD). */
