import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = await readFile(join(root, 'docs/WALKTHROUGH.md'), 'utf8');

interface Step {
  readonly file: string;
  readonly name: string;
}

/** Finds the steps of each path, written as `file#function` with a link to the file. */
const paths = text
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const steps = section.matchAll(/^\d+\. \[`([^`#]+)#(\w+)`\]\(\.\.\/src\/([^)]+)\)/gm);
    return {
      title: section.split('\n')[0] ?? '',
      steps: [...steps].map(([, file = '', name = '', link]): Step & { link?: string } => ({
        file,
        name,
        ...(link !== undefined && { link }),
      })),
      lines: section
        .replace(/^.*/, '')
        .split('\n')
        .filter((line) => /^\d+\. /.test(line)).length,
    };
  });

/** Whether the file defines a function or method of this name, including private ones. */
function defines(source: string, name: string): boolean {
  const pattern = `^\\s*(?:export )?(?:async )?(?:function )?#?${name}(?:<[^(]*>)?\\(`;
  return new RegExp(pattern, 'm').test(source);
}

describe('docs/WALKTHROUGH.md', () => {
  it('has ten code paths, the first with at most 45 steps', () => {
    assert.equal(paths.length, 10);
    const [first] = paths;
    assert.ok(first !== undefined && first.steps.length > 20 && first.steps.length <= 45);
  });

  it('describes different functions in different words', () => {
    const functions = new Map<string, string>();
    for (const [, step = '', words = ''] of text.matchAll(/^\d+\. \[`([^`]+)`\]\([^)]+\): (.+)$/gm)) {
      assert.equal(functions.get(words) ?? step, step, words);
      functions.set(words, step);
    }
  });

  for (const { title, steps, lines } of paths) {
    it(`names existing functions in: ${title}`, async () => {
      assert.equal(steps.length, lines, 'every entry names a file and a function');
      for (const { file, name, link } of steps) {
        assert.equal(link, file);
        const source = await readFile(join(root, 'src', file), 'utf8');
        assert.ok(defines(source, name), `src/${file} has no function ${name}`);
      }
    });
  }
});
