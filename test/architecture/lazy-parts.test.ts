import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Those that are gone when the program runs, and those that wait until somebody asks, are none of them. */
const atOnce = /^(?:import|export)(?! type\b)[^;]*?from '(\.[^']+)';/gm;

/** `run` and `up` have folders of their own. */
function commandFile(command: string): string {
  return `src/cli/${['run', 'up'].includes(command) ? `${command}/` : ''}${command}.ts`;
}

/** All files that are loaded with the given one. */
async function loadedWith(path: string, found = new Set<string>()): Promise<ReadonlySet<string>> {
  if (found.has(path)) return found;
  found.add(path);
  const text = await readFile(join(root, path), 'utf8');
  for (const [, from = ''] of text.matchAll(atOnce))
    await loadedWith(posix.join(posix.dirname(path), from), found);
  return found;
}

for (const command of ['run', 'up', 'status', 'explain']) {
  test(`kubeling ${command} does not load the embedded API before it is asked for`, async () => {
    const loaded = await loadedWith(commandFile(command));
    assert.ok(loaded.has('src/lib/index.ts'), 'imports are followed');
    assert.deepEqual(
      [...loaded].filter((path) => path.startsWith('src/local-api/')),
      [],
    );
  });
}

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load what serves devices before there is a plugin`, async () => {
    const loaded = await loadedWith(commandFile(command));
    const lazy = /^src\/resources\/(?:devices\/device-manager|pod-resources\/)/;
    assert.deepEqual(
      [...loaded].filter((path) => lazy.test(path)),
      [],
    );
  });
}

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load what gives out processors before it is asked for`, async () => {
    const loaded = await loadedWith(commandFile(command));
    const parts = /^src\/resources\/(?:exclusive|cpu|memory)\//;
    assert.deepEqual(
      [...loaded].filter((path) => parts.test(path)),
      [],
    );
  });
}

test('what gives out processors is found where it is loaded at once', async () => {
  const loaded = await loadedWith('src/resources/exclusive/index.ts');
  assert.ok(loaded.has('src/resources/cpu/cpu-manager.ts'));
});

test('the embedded API is found where it is loaded at once', async () => {
  const loaded = await loadedWith('src/cli/up/up-api.ts');
  assert.ok(loaded.has('src/local-api/index.ts') && loaded.has('src/local-api/persistence/index.ts'));
});

for (const command of ['run', 'up']) {
  test(`kubeling ${command} does not load who speaks to systemd before cgroups are left to it`, async () => {
    const loaded = await loadedWith(commandFile(command));
    assert.ok(loaded.has('src/resources/cgroups/cgroup-manager.ts'), 'imports are followed');
    assert.deepEqual(
      [...loaded].filter((path) => /^src\/(?:resources\/systemd|lib\/dbus)\//.test(path)),
      [],
    );
  });
}
