// tests/io/model_file_test.cpp: models saved and loaded by one call each.
#include <filesystem>
#include <fstream>

#include "../catch.hpp"
#include "sinter/io.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

TEST_CASE("save and load pass a model through a file, or leave it as it was") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_model_file_test.safetensors").string();
  generator gen(1);
  const nn::linear model(3, 4, gen);
  nn::save(model, path);
  nn::linear other(3, 4, gen);
  REQUIRE_FALSE(equal(other.weight.value(), model.weight.value()));
  nn::load(other, path);
  CHECK(equal(other.weight.value(), model.weight.value()));
  CHECK(equal(other.bias.value(), model.bias.value()));

  nn::linear wider(3, 5, gen);
  const tensor before = wider.weight.value().clone();
  CHECK_THROWS_WITH(nn::load(wider, path), Catch::Contains("weight") && Catch::Contains("(4, 3)"));
  CHECK(equal(wider.weight.value(), before));
  std::ofstream(path, std::ios::binary) << "PK\3\4 and so on, as torch.save begins";
  CHECK_THROWS_WITH(nn::load(wider, path), Catch::Contains("torch.save") && Catch::Contains("save_file"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(nn::load(wider, path), Catch::Contains(path));
}
