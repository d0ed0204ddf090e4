import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
/** The path of the kubeling launcher in the unit files. */
const installed = '/usr/local/bin/kubeling';

/**
 * The problems that systemd-analyze reports for a unit file, in which the launcher is replaced by
 * the one of this checkout.
 */
async function problemsOf(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'unit-'));
  try {
    const path = join(directory, name);
    await writeFile(path, text.replaceAll(installed, join(checkout, 'kubeling')));
    const { error, stdout, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
    if (error !== undefined) throw error;
    // Drops the problems of other units of the machine.
    return `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line.includes(directory) || line.startsWith(`${name}:`))
      .join('\n');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('systemd unit files of this repository', () => {
  const units = globSync('**/*.service', { cwd: checkout, exclude: ['node_modules'] });

  it('the search for unit files finds the example unit', () => {
    assert.ok(units.includes('examples/node/kubeling.service'));
  });

  for (const unit of units) {
    it(`${unit} has no problem that systemd-analyze reports`, async () => {
      assert.equal(await problemsOf(basename(unit), await readFile(join(checkout, unit), 'utf8')), '');
    });
  }

  it('a setting in the wrong section is reported as a problem', async () => {
    const text = `[Service]\nExecStart=${installed} run\nStartLimitIntervalSec=0\n`;
    assert.match(
      await problemsOf('wrong.service', text),
      /StartLimitIntervalSec.*\[Service\]|Service.*StartLimit/,
    );
  });
});
