#!/bin/sh
# A study with its report: baselines, a model with two seeds, tables, figures and one page.
#
#     examples/shell/small_study.sh      # then open study/report.html
set -eu
fullrank=${FULLRANK:-fullrank}
cat >study.json <<'END'
{
  "name": "small",
  "data": {"drawn": {"synth": "tiny", "events": 2000}},
  "protocol": {"window": 0},
  "diagnostic-window": 0,
  "oracle": true,
  "baselines": ["recency", "popularity"],
  "models": ["craft"],
  "seeds": [7, 17],
  "k": [1, 20],
  "settings": {"epochs": 2, "dim": 16, "history": 16}
}
END
"$fullrank" study run study.json -o study
"$fullrank" study status study
