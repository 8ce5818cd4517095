// sinter/io/model_file.hpp: a model in a file.
#pragma once

#include "sinter/io/safetensors.hpp"
#include "sinter/io/write_safetensors.hpp"
#include "sinter/nn/state.hpp"

namespace sinter::nn {

/// Writes the parameters and buffers of a model to a safetensors file, by their names in PyTorch. The file is complete
/// or as it was before. Errors: io_error where it cannot be written.
///
///     nn::save(model, "digits.safetensors");
template <is_module M>
void save(const M& model, const std::string& path) {
  write_safetensors(path, state(model));
}

/// Reads them back into a model of the same members. Errors: io_error for a file that cannot be read, and those of
/// load_state, which name all that does not fit; the model is then as before.
///
///     nn::load(model, "digits.safetensors");
template <is_module M>
void load(const M& model, const std::string& path, const load_options& options = {}) {
  load_state(model, read_safetensors(path), options);
}

}  // namespace sinter::nn
