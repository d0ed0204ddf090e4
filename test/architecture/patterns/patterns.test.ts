import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { codeOnly, patternsOf } from '../source-text.ts';
import { findAmbiguity, loopsOf } from './ambiguity.ts';
import { exemptPatterns, patternsOfTexts } from './exempt.ts';
import { patternsMadeBy } from './made-patterns.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface Found {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

async function allPatterns(): Promise<{ patterns: readonly Found[]; unreached: readonly string[] }> {
  const patterns: Found[] = [];
  const unreached: string[] = [];
  for await (const file of glob('src/**/*.ts', { cwd: root })) {
    if (file.endsWith('.test.ts')) continue;
    const text = await readFile(join(root, file), 'utf8');
    patterns.push(...patternsOf(text).map(({ source, flags }) => ({ file, source, flags })));
    const sites = placesOf(codeOnly(text), 'RegExp(');
    if (sites.length === 0 || patternsOfTexts.has(file)) continue;
    const created = await patternsMadeBy(root, file);
    patterns.push(...created.map(({ source, flags }) => ({ file, source, flags })));
    const lines = new Set(created.map(({ line }) => line));
    unreached.push(...sites.filter((line) => !lines.has(line)).map((line) => `${file}:${line}`));
  }
  return { patterns, unreached };
}

function placesOf(code: string, word: string): readonly number[] {
  return code.split('\n').flatMap((line, index) => (line.includes(word) ? [index + 1] : []));
}

function exemptionOf({ file, source }: Found) {
  return exemptPatterns.find((exempt) => exempt.file === file && exempt.source === source);
}

const { patterns, unreached } = await allPatterns();

test('every regular expression of the program takes time linear in its text, or its text has a maximum length', () => {
  assert.ok(patterns.length > 400, 'the patterns are found');
  const wrong = patterns
    .filter((pattern) => exemptionOf(pattern) === undefined)
    .flatMap(({ file, source, flags }) => {
      const found = findAmbiguity(source, flags);
      if (found === undefined) return [];
      const shown = `after ${JSON.stringify(found.prefix)}, many times ${JSON.stringify(found.pump)}`;
      return [`${file}: /${source}/${flags} is ${found.degree} (${found.why}): ${shown}`];
    });
  assert.deepEqual(wrong, []);
});

test('every regular expression built at run time is checked, or contains no text from outside the program', () => {
  assert.deepEqual(unreached, []);
});

test('every exemption matches an existing regular expression that is not linear', () => {
  for (const { file, source } of exemptPatterns) {
    const pattern = patterns.find((each) => each.file === file && each.source === source);
    assert.ok(pattern !== undefined, `${file} has no /${source}/ any more`);
    assert.ok(findAmbiguity(source, pattern.flags) !== undefined, `/${source}/ of ${file} is linear`);
  }
});

/**
 * For a text of this length a quadratic regular expression takes seconds, and a linear one about a
 * millisecond.
 */
const pumpedCharacters = 60_000;
const mostMs = 1_000;
const ends = ['', '\0', '\n', '!', 'ü'];

function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

function match(source: string, flags: string, text: string): void {
  const pattern = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  text.replace(pattern, '');
}

test('every regular expression takes less than a second for a long text that keeps one of its repetitions (* or +) matching', () => {
  const slow: string[] = [];
  for (const pattern of patterns) {
    const { source, flags } = pattern;
    const most = exemptionOf(pattern)?.mostCharacters ?? pumpedCharacters;
    for (const { prefix, pump } of loopsOf(source, flags))
      for (const end of ends) {
        const text = `${prefix}${pump.repeat(Math.ceil(most / pump.length)).slice(0, most)}${end}`;
        const took = cpuMs(() => match(source, flags, text));
        if (took > mostMs)
          slow.push(`/${source}/ takes ${took} ms for ${JSON.stringify(pump)}, ${most} long`);
      }
  }
  assert.deepEqual(slow, []);
});

const known: readonly (readonly [string, string, string | undefined])[] = [
  ['a+', '', undefined],
  ['a+b', '', 'polynomial'],
  ['a+b', 'y', undefined],
  ['^a+b', '', undefined],
  ['^a+b', 'm', undefined],
  ['^\\s+b', 'm', 'polynomial'],
  ['\\s+$', '', 'polynomial'],
  ['^\\s+|\\s+$', 'g', 'polynomial'],
  ['^(a+)+$', '', 'exponential'],
  ['^(a*)*b', '', 'exponential'],
  ['^(?:a|a)*b', '', 'exponential'],
  ['^(?:a|A)*b', 'i', 'exponential'],
  ['^(?:a|A)*b', '', undefined],
  ['^(?:\\d+\\.?\\d*[sm])+$', '', 'exponential'],
  ['^(?:\\d+(?:\\.\\d*)?[sm])+$', '', undefined],
  ['^\\d+\\.?\\d*', '', undefined],
  ['^\\d+\\.?\\d*$', '', 'polynomial'],
  ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', '', undefined],
  ['"(?:[^"\\\\]|\\\\.)*"', 'y', undefined],
  ['([\'"]).*\\1', '', 'polynomial'],
  ['^(a*)\\1', '', 'unknown'],
  ['(?=.*b)a', '', 'polynomial'],
  ['(?<=ab)c', '', 'unknown'],
  ['^(?:a?){20}b', '', 'unknown'],
  ['^(?:a|aa){20}b', '', 'exponential'],
  ['^a{0,50}b', '', undefined],
  ['^a{0,50}[ab]{0,500}c{0,500}d', '', undefined],
  ['^a{0,500}a{0,500}b', '', 'polynomial'],
];

test('findAmbiguity classifies sample patterns as linear, polynomial or exponential', () => {
  for (const [source, flags, degree] of known)
    assert.equal(findAmbiguity(source, flags)?.degree, degree, `/${source}/${flags}`);
});
