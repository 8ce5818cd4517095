// sinter/io.hpp: files of numbers and pictures, and a progress bar.
#pragma once

#include "sinter/io/csv.hpp"
#include "sinter/io/descriptor.hpp"
#include "sinter/io/elements.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/gzip.hpp"
#include "sinter/io/idx.hpp"
#include "sinter/io/json.hpp"
#include "sinter/io/mapping.hpp"
#include "sinter/io/npy.hpp"
#include "sinter/io/png.hpp"
#include "sinter/io/progress.hpp"
#include "sinter/io/safetensors.hpp"
#include "sinter/io/svg.hpp"
#include "sinter/io/utf8.hpp"
#include "sinter/io/write.hpp"
#include "sinter/io/write_safetensors.hpp"
