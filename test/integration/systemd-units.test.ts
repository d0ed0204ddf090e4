import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
/** The path of the launcher in the units. */
const installed = '/usr/local/bin/kubeling';

/** The problems systemd-analyze reports for a unit whose launcher is that of this checkout. */
async function problemsOf(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'unit-'));
  try {
    const path = join(directory, name);
    await writeFile(path, text.replaceAll(installed, join(checkout, 'kubeling')));
    const { error, stdout, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
    if (error !== undefined) throw error;
    // Ignores other units of the machine and their problems.
    return `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line.includes(directory) || line.startsWith(`${name}:`))
      .join('\n');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('systemd units', () => {
  const units = globSync('**/*.service', { cwd: checkout, exclude: ['node_modules'] });

  it('are found', () => {
    assert.ok(units.includes('examples/node/kubeling.service'));
  });

  for (const unit of units) {
    it(`${unit} has no problem that systemd-analyze reports`, async () => {
      assert.equal(await problemsOf(basename(unit), await readFile(join(checkout, unit), 'utf8')), '');
    });
  }

  it('fail the check with a setting in the wrong section', async () => {
    const text = `[Service]\nExecStart=${installed} run\nStartLimitIntervalSec=0\n`;
    assert.match(
      await problemsOf('wrong.service', text),
      /StartLimitIntervalSec.*\[Service\]|Service.*StartLimit/,
    );
  });
});
