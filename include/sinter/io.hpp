// sinter/io.hpp: files of numbers, texts and pictures, and a progress bar.
#pragma once

#include "sinter/io/csv.hpp"
#include "sinter/io/descriptor.hpp"
#include "sinter/io/dlpack.hpp"
#include "sinter/io/elements.hpp"
#include "sinter/io/exif.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/folder.hpp"
#include "sinter/io/from_chars.hpp"
#include "sinter/io/gzip.hpp"
#include "sinter/io/idx.hpp"
#include "sinter/io/image.hpp"
#include "sinter/io/instances.hpp"
#include "sinter/io/jpeg.hpp"
#include "sinter/io/json.hpp"
#include "sinter/io/mapping.hpp"
#include "sinter/io/model_file.hpp"
#include "sinter/io/npy.hpp"
#include "sinter/io/pixels.hpp"
#include "sinter/io/png.hpp"
#include "sinter/io/profile.hpp"
#include "sinter/io/progress.hpp"
#include "sinter/io/run_file.hpp"
#include "sinter/io/safetensors.hpp"
#include "sinter/io/svg.hpp"
#include "sinter/io/table.hpp"
#include "sinter/io/utf8.hpp"
#include "sinter/io/write.hpp"
#include "sinter/io/write_safetensors.hpp"

namespace sinter::detail {
struct io_header {};  // see ops/other_headers.hpp
}  // namespace sinter::detail
