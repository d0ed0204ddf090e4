import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hostFiles, kubeletFlagTable, loadConfig } from '../../src/config/index.ts';
import { readYamlDocuments, yamlToJs } from '../../src/lib/index.ts';

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));

test('the example configuration loads without a warning', async () => {
  const loaded = await loadConfig(['--config', example('node/kubelet.yaml')], {
    files: hostFiles(),
    cwd: '/',
  });
  assert.deepEqual(loaded.warnings, []);
  assert.equal(loaded.config.maxPods, 110);
});

test('the example unit uses only existing flags', async () => {
  const unit = await readFile(example('node/kubeling.service'), 'utf8');
  const given = [...unit.matchAll(/--([a-z-]+)=/g)].map(([, name]) => name ?? '');
  assert.ok(given.length > 0);
  const known = Object.keys(kubeletFlagTable());
  for (const name of given) assert.ok(known.includes(name), name);
  assert.match(unit, /^KillMode=process$/m);
});

test('the kubectl examples are valid objects, and their directory contains no other files', async () => {
  const entries = await readdir(example(''), { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  assert.deepEqual(files.sort(), ['greeter.yaml', 'web.yaml']);
  for (const name of files) {
    const documents = await readYamlDocuments(await readFile(example(name), 'utf8'));
    for (const { tree, problems } of documents) {
      assert.deepEqual(problems, [], name);
      const { apiVersion, kind } = yamlToJs(tree ?? assert.fail(name)) as Record<string, unknown>;
      assert.equal(apiVersion, 'v1', name);
      assert.match(String(kind), /^(Pod|ConfigMap)$/, name);
    }
  }
});
