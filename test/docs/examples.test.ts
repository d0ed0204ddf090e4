import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hostFiles, loadConfig } from '../../src/config/index.ts';
import { readYaml } from '../../src/lib/index.ts';

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));

test('the example configuration loads without a warning', async () => {
  const loaded = await loadConfig(['--config', example('kubelet.yaml')], { files: hostFiles(), cwd: '/' });
  assert.deepEqual(loaded.warnings, []);
  assert.equal(loaded.config.maxPods, 110);
});

test('the example manifest is one YAML document without mistakes', async () => {
  const { problems } = await readYaml(await readFile(example('web.yaml'), 'utf8'));
  assert.deepEqual(problems, []);
});
