import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
/**
 * Matches imports that load a file immediately: no type-only imports, which are erased, and no
 * dynamic imports.
 */
const atOnce = /^(?:import|export)(?! type\b)[^;]*?from '(\.[^']+)';/gm;

/** Returns the file of a command; `run` and `up` have separate directories. */
function commandFile(command: string): string {
  return `src/cli/${['run', 'up'].includes(command) ? `${command}/` : ''}${command}.ts`;
}

/** Returns all files that are loaded together with the given one. */
async function loadedWith(path: string, found = new Set<string>()): Promise<ReadonlySet<string>> {
  if (found.has(path)) return found;
  found.add(path);
  const text = await readFile(join(root, path), 'utf8');
  for (const [, from = ''] of text.matchAll(atOnce))
    await loadedWith(posix.join(posix.dirname(path), from), found);
  return found;
}

for (const command of ['run', 'up', 'status', 'explain']) {
  test(`kubeling ${command} does not load the embedded API at its start`, async () => {
    const loaded = await loadedWith(commandFile(command));
    assert.ok(loaded.has('src/lib/index.ts'), 'imports are followed');
    assert.deepEqual(
      [...loaded].filter((path) => path.startsWith('src/local-api/')),
      [],
    );
  });
}

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load the device manager and the PodResources API at its start`, async () => {
    const loaded = await loadedWith(commandFile(command));
    const lazy = /^src\/resources\/(?:devices\/device-manager|pod-resources\/)/;
    assert.deepEqual(
      [...loaded].filter((path) => lazy.test(path)),
      [],
    );
  });
}

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load the CPU and memory managers at its start`, async () => {
    const loaded = await loadedWith(commandFile(command));
    const parts = /^src\/resources\/(?:exclusive|cpu|memory)\//;
    assert.deepEqual(
      [...loaded].filter((path) => parts.test(path)),
      [],
    );
  });
}

test('the search for loaded files finds the CPU manager behind the entry point of exclusive resources', async () => {
  const loaded = await loadedWith('src/resources/exclusive/index.ts');
  assert.ok(loaded.has('src/resources/cpu/cpu-manager.ts'));
});

test('the search for loaded files finds the embedded API behind the command that starts it', async () => {
  const loaded = await loadedWith('src/cli/up/up-api.ts');
  assert.ok(loaded.has('src/local-api/index.ts') && loaded.has('src/local-api/persistence/index.ts'));
});

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load the D-Bus client of systemd at its start`, async () => {
    const loaded = await loadedWith(commandFile(command));
    assert.ok(loaded.has('src/resources/cgroups/cgroup-manager.ts'), 'imports are followed');
    assert.deepEqual(
      [...loaded].filter((path) => /^src\/(?:resources\/systemd|lib\/dbus)\//.test(path)),
      [],
    );
  });
}
