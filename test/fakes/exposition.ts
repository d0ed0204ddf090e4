import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

/** A sample of a metrics page. */
export interface ExposedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly timestampMs: number | undefined;
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const number = String.raw`[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN`;
const sample = new RegExp(String.raw`^(${name})(?:\{(.*)\})? (${number})(?: (\d+))?$`, 'i');
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)/y;
const suffixes = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] } as const;

/**
 * Parses a page in the text format 0.0.4 as strictly as it is specified, and returns its samples.
 */
export function parseExposition(page: string): readonly ExposedSample[] {
  assert.ok(page === '' || page.endsWith('\n'), 'the last line must end, too');
  const types = new Map<string, string>();
  const ended = new Set<string>();
  const observed = new Set<string>();
  const samples: ExposedSample[] = [];
  let current = '';
  for (const line of page.split('\n').slice(0, -1)) {
    const [, kind, family, rest = ''] = new RegExp(`^# (HELP|TYPE) (${name}) (.*)$`).exec(line) ?? [];
    if (family !== undefined) {
      if (family !== current) {
        assert.ok(!ended.has(family), `${family} comes twice`);
        ended.add(family);
        current = family;
      }
      if (kind === 'TYPE') {
        assert.match(rest, /^(?:counter|gauge|histogram|summary|untyped)$/, line);
        assert.ok(!types.has(family), `${family} has two types`);
        types.set(family, rest);
      }
      continue;
    }
    assert.ok(!line.startsWith('#'), `${line} is no comment of the format`);
    const found = parseSample(line);
    assert.ok(belongsTo(found.name, current, types.get(current)), `${line} is not of ${current}`);
    const key = `${found.name} ${JSON.stringify(Object.entries(found.labels).sort())}`;
    assert.ok(!observed.has(key), `${line} is there twice`);
    observed.add(key);
    samples.push(found);
  }
  return samples;
}

function parseSample(line: string): ExposedSample {
  const [, called, braces = '', value = '', timestamp] = sample.exec(line) ?? [];
  assert.ok(called !== undefined, `${line} is no sample`);
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < braces.length) {
    const [, key = '', text = ''] =
      label.exec(braces) ?? assert.fail(`${line} has labels that cannot be read`);
    assert.ok(!(key in labels), `${line} has a label twice`);
    labels[key] = text.replaceAll(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character));
  }
  const numeric = Number(value.replace(/^([+-]?)inf$/i, '$1Infinity'));
  return {
    name: called,
    labels,
    value: numeric,
    timestampMs: timestamp === undefined ? undefined : Number(timestamp),
  };
}

function belongsTo(called: string, family: string, type = 'untyped'): boolean {
  const endings: readonly string[] = type === 'histogram' || type === 'summary' ? suffixes[type] : [''];
  return endings.some((ending) => called === `${family}${ending}`);
}

/** Why promtool cannot check a metrics page; false if it can. */
export const noPromtool = isThere()
  ? false
  : "needs promtool: the set-up leaves out Debian's prometheus, which is 316 MiB with its dependencies";

/**
 * Returns promtool's findings about a metrics page, line by line: an unparsable page fails, advice
 * on names is returned.
 */
export function promtoolSays(page: string): string {
  try {
    execFileSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8', stdio: 'pipe' });
    return '';
  } catch (error) {
    const { status, stderr } = error as { readonly status: number; readonly stderr: string };
    // promtool exits with code 3 for advice on names, which Kubernetes defines.
    assert.equal(status, 3, stderr);
    return stderr;
  }
}

function isThere(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
