// SPDX-License-Identifier: Apache-2.0

#include "spec/read_trial.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "model/placeholder.hpp"
#include "spec/read_metrics.hpp"
#include "spec/source_text.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// What templates are read with.
struct Templates {
    const std::vector<std::string>& keys;
    const std::string& spec_dir;
    Problems& problems;

    void check(Place place, const std::string& path, std::string_view text, Quoting quoting) const {
        if (const Status status = check_placeholders(text, keys, quoting); !status) {
            problems.add(place, path, status.error().message);
        }
    }
};

/// One element of a command. `{lr}` without quotes is a map to YAML.
void read_element(
    const YamlNode& node,
    const std::string& path,
    const Templates& templates,
    std::vector<std::string>& command
) {
    if (node.is_scalar()) {
        templates.check(node.place, path, node.text, Quoting::None);
        command.push_back(node.text);
        return;
    }
    const bool is_bare_placeholder =
        node.is_map() && node.entries.size() == 1 && node.entries[0].value.is_null();
    std::string message = expected("text", node);
    if (is_bare_placeholder) {
        message = fmt::format("{{{0}}} needs quotes: \"{{{0}}}\"", node.entries[0].key);
    } else if (node.is_null()) {
        message += "; quotes make it text: \"~\", \"null\" or \"\"";
    }
    templates.problems.add(node.place, path, message);
}

/// A command written as text, as the list that was probably meant.
std::string as_list(std::string_view text) {
    std::string list = "[";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = text.find_first_not_of(" \t\n", at);
        if (start == std::string_view::npos) {
            break;
        }
        const std::size_t end = std::min(text.find_first_of(" \t\n", start), text.size());
        const std::string_view word = text.substr(start, end - start);
        const bool plain = word.find_first_of("{}[],:#'\"&*!|>%@`") == std::string_view::npos;
        list += list.size() == 1 ? "" : ", ";
        list += plain ? std::string(word) : fmt::format("\"{}\"", word);
        at = end;
    }
    return list + "]";
}

/// Which functions there are is known to the program alone.
void read_function(
    const Section& section,
    const YamlNode& function,
    bool has_command,
    TrialSpec& trial
) {
    trial.function = section.text("function").value_or("");
    if (has_command) {
        section.problem(
            function, "function", "a command or shell line is there as well; keep one of them"
        );
    } else if (function.is_scalar() && trial.function.empty()) {
        section.problem(function, "function", "expected the name of a function, found no text");
    }
}

void read_command(const Section& section, const Templates& templates, TrialSpec& trial) {
    const YamlNode* command = section.get("command");
    const YamlNode* shell = section.get("shell");
    const YamlNode* function = section.get("function");
    const std::string path = section.path_of("command");
    if (command != nullptr && shell != nullptr) {
        section.problem(*shell, "shell", "`command` is there as well; keep one of the two");
    }
    if (command == nullptr && shell == nullptr && function == nullptr) {
        section.problems().add(
            section.place(), path, "missing; say what a trial runs, or give trial.shell"
        );
        return;
    }
    if (function != nullptr) {
        read_function(section, *function, command != nullptr || shell != nullptr, trial);
    }
    if (shell != nullptr) {
        trial.shell = section.text("shell").value_or("");
        templates.check(shell->place, section.path_of("shell"), trial.shell, Quoting::Shell);
        if (trial.shell.find_first_not_of(" \t\n") == std::string::npos) {
            section.problem(*shell, "shell", "the line is empty");
        }
    }
    if (command == nullptr) {
        return;
    }
    constexpr std::size_t kLongestShown = 200;
    if (command->is_scalar() && command->text.size() <= kLongestShown) {
        section.problem(
            *command,
            "command",
            fmt::format(
                "a command is a list: {}; for a line with pipes and variables use trial.shell",
                as_list(command->text)
            )
        );
    } else if (!command->is_list()) {
        section.problem(*command, "command", expected("a list: [program, argument, …]", *command));
    } else {
        for (std::size_t index = 0; index < command->items.size(); ++index) {
            const std::string item = fmt::format("{}[{}]", path, index);
            read_element(command->items[index], item, templates, trial.command);
        }
        if (command->items.empty() || command->items[0].text.empty()) {
            section.problem(*command, "command", "the program, its first element, is missing");
        }
    }
}

void read_env(const Section& section, const Templates& templates, TrialSpec& trial) {
    const YamlNode* env = section.get("env");
    if (env == nullptr) {
        return;
    }
    if (!env->is_map()) {
        section.problem(*env, "env", expected("a map such as {MODEL: small}", *env));
        return;
    }
    for (const Entry& entry : env->entries) {
        const std::string path = section.path_of("env") + "." + entry.key;
        if (entry.key.empty() || entry.key.find('=') != std::string::npos) {
            section.problems().add(
                entry.place, path, "a variable's name is not empty and holds no ="
            );
            continue;
        }
        if (entry.key.substr(0, 7) == "MUSTER_") {
            section.problems().add(
                entry.place, path, "variables that begin with MUSTER_ are muster's own"
            );
            continue;
        }
        if (entry.value.is_null()) {
            trial.env.push_back({entry.key, ""});
        } else if (auto text = read_text(entry.value, path, section.problems())) {
            templates.check(entry.value.place, path, *text, Quoting::None);
            trial.env.push_back({entry.key, std::move(*text)});
        }
    }
}

/// Empty when a file may be written to `target` in the trial's directory.
std::string wrong_target(const std::string& target) {
    const fs::path path(target);
    const bool leaves =
        std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
    if (target.empty() || path.is_absolute() || leaves || !path.has_filename() ||
        path.lexically_normal() == ".") {
        return "a file is written into the trial's directory; give a path below it";
    }
    return "";
}

/// The template's text from its file, or from `content:` in the spec itself.
std::optional<TemplateFile>
read_template(const Entry& entry, const std::string& path, const Templates& templates) {
    TemplateFile file{.target = entry.key};
    const YamlNode* content = entry.value.is_map() ? entry.value.find("content") : nullptr;
    const YamlNode* source = entry.value.is_map() ? entry.value.find("source") : &entry.value;
    if (entry.value.is_map()) {
        for (const Entry& inner : entry.value.entries) {
            if (inner.key != "content" && inner.key != "source") {
                templates.problems.add(
                    inner.place,
                    path + "." + inner.key,
                    unknown_key(inner.key, {"source", "content"})
                );
            }
        }
    }
    if (source == nullptr && content == nullptr) {
        templates.problems.add(entry.value.place, path, "expected a path, or {content: text}");
        return std::nullopt;
    }
    if (source != nullptr) {
        const std::optional<std::string> name = read_text(*source, path, templates.problems);
        if (!name) {
            return std::nullopt;
        }
        file.source = absolute_path(*name, templates.spec_dir);
    }
    if (content != nullptr) {
        file.content = read_text(*content, path + ".content", templates.problems).value_or("");
        return file;
    }
    Result<std::string> text = read_text_file(file.source);
    if (!text) {
        templates.problems.add(source->place, path, text.error().message);
        return std::nullopt;
    }
    file.content = std::move(*text);
    return file;
}

void check_content(
    const Entry& entry,
    const std::string& path,
    const TemplateFile& file,
    const Templates& templates
) {
    const std::optional<std::size_t> bad = find_not_utf8(file.content);
    const std::size_t zero = file.content.find('\0');
    const std::string name = file.source.empty() ? "the content" : file.source;
    if (bad || zero != std::string::npos) {
        const Place at = place_of(file.content, bad.value_or(zero));
        templates.problems.add(
            entry.place,
            path,
            fmt::format("{}:{}:{}: a template must be UTF-8 text", name, at.line, at.column)
        );
        return;
    }
    if (const Status status = check_placeholders(file.content, templates.keys); !status) {
        templates.problems.add(entry.place, path, name + ": " + status.error().message);
    }
}

void read_files(const Section& section, const Templates& templates, TrialSpec& trial) {
    const YamlNode* files = section.get("files");
    if (files == nullptr) {
        return;
    }
    if (!files->is_map()) {
        section.problem(*files, "files", expected("a map such as {run.nml: run.nml.in}", *files));
        return;
    }
    for (const Entry& entry : files->entries) {
        const std::string path = section.path_of("files") + "." + entry.key;
        if (const std::string wrong = wrong_target(entry.key); !wrong.empty()) {
            section.problems().add(entry.place, path, wrong);
            continue;
        }
        if (std::optional<TemplateFile> file = read_template(entry, path, templates)) {
            check_content(entry, path, *file, templates);
            trial.files.push_back(std::move(*file));
        }
    }
}

void read_workdir(const Section& section, const std::string& spec_dir, TrialSpec& trial) {
    trial.workdir = spec_dir;
    const YamlNode* node = section.get("workdir");
    const std::optional<std::string> workdir = section.text("workdir");
    if (!workdir) {
        return;
    }
    trial.workdir_is_trial_dir = *workdir == "trial";
    if (trial.workdir_is_trial_dir) {
        trial.workdir = "";
        return;
    }
    trial.workdir = absolute_path(*workdir, spec_dir);
    std::error_code problem;
    // An absolute one may be there on the nodes only.
    if (!fs::path(*workdir).is_absolute() && !fs::is_directory(trial.workdir, problem)) {
        section.problem(*node, "workdir", trial.workdir + " is no directory");
    }
}

void read_choices(const Section& section, TrialSpec& trial) {
    trial.trial_dir =
        section
            .one_of<TrialDir>(
                "trial_dir",
                {{"auto", TrialDir::Auto}, {"always", TrialDir::Always}, {"never", TrialDir::Never}}
            )
            .value_or(trial.trial_dir);
    trial.output = section
                       .one_of<OutputMode>(
                           "output",
                           {{"file", OutputMode::File},
                            {"stream", OutputMode::Stream},
                            {"pty", OutputMode::Pty},
                            {"discard", OutputMode::Discard}}
                       )
                       .value_or(trial.output);
    enum class Launch { Single, Workers, Nodes, Mpi };
    const std::optional<Launch> launch = section.one_of<Launch>(
        "launch",
        {{"single", Launch::Single},
         {"workers", Launch::Workers},
         {"nodes", Launch::Nodes},
         {"mpi", Launch::Mpi}}
    );
    if (launch && *launch != Launch::Single) {
        const YamlNode* node = section.get("launch");
        section.problems().add_later(
            node->place, section.path_of("launch"), "'" + node->text + "'"
        );
    }
}

/// What contradicts itself between keys.
void check_trial(const Section& section, const TrialSpec& trial) {
    const YamlNode* trial_dir = section.get("trial_dir");
    if (trial.trial_dir != TrialDir::Never || trial_dir == nullptr) {
        return;
    }
    const auto names_it = [](const std::string& text) {
        return mentions(text, "muster.trial_dir");
    };
    const bool named =
        std::any_of(trial.command.begin(), trial.command.end(), names_it) || names_it(trial.shell);
    if (trial.workdir_is_trial_dir || !trial.files.empty() || named) {
        section.problem(
            *trial_dir,
            "trial_dir",
            "'never', but workdir, files or {muster.trial_dir} need the directory; use auto"
        );
    }
}

}  // namespace

std::string absolute_path(const std::string& path, const std::string& base) {
    std::string absolute = (fs::path(base) / path).lexically_normal().string();
    if (absolute.size() > 1 && absolute.back() == '/') {
        absolute.pop_back();
    }
    return absolute;
}

void read_trial(
    const Section& top,
    const std::vector<std::string>& keys,
    const std::string& spec_dir,
    TrialSpec& trial
) {
    const YamlNode* node = top.get("trial");
    const Section section(node, "trial", "trial", top.problems());
    if (node != nullptr && !node->is_map()) {
        return;
    }
    const Templates templates{keys, spec_dir, top.problems()};
    read_command(section, templates, trial);
    read_env(section, templates, trial);
    read_files(section, templates, trial);
    read_workdir(section, spec_dir, trial);
    read_choices(section, trial);
    read_metrics(section, keys, trial.metrics);
    trial.time_limit = section.duration("time_limit", false);
    trial.report_timeout = section.duration("report_timeout", false);
    trial.grace = section.duration("grace", true).value_or(trial.grace);
    trial.keep_env = section.texts("keep_env");
    trial.drop_env = section.texts("drop_env");
    check_trial(section, trial);
}

}  // namespace muster
