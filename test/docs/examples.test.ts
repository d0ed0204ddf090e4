import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hostFiles, kubeletFlagTable, loadConfig } from '../../src/config/index.ts';
import { readYaml } from '../../src/lib/index.ts';

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));

test('the example configuration loads without a warning', async () => {
  const loaded = await loadConfig(['--config', example('kubelet.yaml')], { files: hostFiles(), cwd: '/' });
  assert.deepEqual(loaded.warnings, []);
  assert.equal(loaded.config.maxPods, 110);
});

test('the example unit names flags that are there', async () => {
  const unit = await readFile(example('kubeling.service'), 'utf8');
  const given = [...unit.matchAll(/--([a-z-]+)=/g)].map(([, name]) => name ?? '');
  assert.ok(given.length > 0);
  const known = Object.keys(kubeletFlagTable());
  for (const name of given) assert.ok(known.includes(name), name);
  assert.match(unit, /^KillMode=process$/m);
});

test('the example manifest is one YAML document without mistakes', async () => {
  const { problems } = await readYaml(await readFile(example('web.yaml'), 'utf8'));
  assert.deepEqual(problems, []);
});
