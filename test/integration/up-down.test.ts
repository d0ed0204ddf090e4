import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { networkName } from '../../src/containerd/index.ts';
import { poll } from '../contract/containerd-backend.ts';
import {
  compareSnapshots,
  listSnapshot,
  type MachineSnapshot,
  mentioning,
  takeSnapshot,
} from '../machine-snapshot.ts';

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));

interface Ended {
  readonly code: number;
  readonly out: string;
}

/** A running kubeling up and its output so far. */
class Up {
  readonly child: ChildProcess;
  out = '';

  constructor(dataDir: string) {
    this.child = spawn(kubeling, ['up', '--data-dir', dataDir, '--runtime-endpoint', 'private']);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk) => {
        this.out += String(chunk);
      });
    }
  }

  async says(text: RegExp): Promise<void> {
    await poll(`kubeling to print ${text}`, async () => {
      if (text.test(this.out)) return true;
      assert.equal(this.child.exitCode, null, `it exited before it printed that:\n${this.out}`);
      return undefined;
    });
  }

  async ends(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    await poll('kubeling to exit', async () => this.child.exitCode ?? this.child.signalCode ?? undefined);
    return this.child.exitCode;
  }
}

function run(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(kubeling, args, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out: stdout + stderr }),
    );
  });
}

describe('kubeling up and kubeling down', () => {
  let dataDir = '';
  let clean: MachineSnapshot;
  const ours = (snapshot: MachineSnapshot) => mentioning(snapshot, [dataDir, networkName(dataDir)]);

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'klg-up-'));
    clean = ours(await takeSnapshot());
  });

  after(async () => {
    await run('down', '--all', '--data-dir', dataDir);
    await rm(dataDir, { recursive: true, force: true });
  });

  it('kubeling up starts a private containerd, runs a sandbox and a container as a self-check, and reports the result', async () => {
    const up = new Up(dataDir);
    await up.says(/^ready/m);
    assert.match(up.out, /^runtime {5}containerd \S+, private, started, process \d+/m);
    assert.match(up.out, /^self-check {2}its address is \d+\.\d+\.\d+\.\d+/m);
    assert.match(up.out, /^self-check {2}it said "hello from a container"/m);
    assert.match(up.out, /^self-check {2}sandbox and container are removed/m);
    const status = await run('status', '--data-dir', dataDir);
    assert.equal(status.code, 0, status.out);
    assert.match(status.out, /is up, process \d+/);
    // The log directory is not readable by others, because the names of log files contain the names
    // of pods.
    assert.equal((await stat(join(dataDir, 'logs'))).mode & 0o777, 0o750);

    const second = await run('up', '--data-dir', dataDir);
    assert.equal(second.code, 1);
    assert.match(second.out, /kubeling is up already in .*, process \d+/);

    assert.equal(await up.ends('SIGINT'), 0);
    assert.match(up.out, /^ended/m);
  });

  it('a restarted kubeling up uses its running containerd again, also after kubeling was killed', async () => {
    const up = new Up(dataDir);
    await up.says(/^ready/m);
    assert.match(up.out, /private, adopted/);
    await up.ends('SIGKILL');
    const again = new Up(dataDir);
    await again.says(/^ready/m);
    assert.match(again.out, /private, adopted/);
    assert.equal(await again.ends('SIGTERM'), 0);
  });

  it('kubeling up reports that its containerd was killed, and restarts it', async () => {
    const up = new Up(dataDir);
    await up.says(/^ready/m);
    const { pid } = JSON.parse(await readFile(join(dataDir, 'containerd', 'containerd.pid'), 'utf8'));
    process.kill(pid, 'SIGKILL');
    await up.says(/^runtime {5}does not respond/m);
    await up.says(/^runtime {5}answers again/m);
    assert.equal(await up.ends('SIGINT'), 0);
  });

  it('kubeling down stops a running kubeling and leaves nothing of it on the machine', async () => {
    const up = new Up(dataDir);
    await up.says(/^ready/m);
    const down = await run('down', '--data-dir', dataDir);
    assert.equal(down.code, 0, down.out);
    assert.match(down.out, /stopped process \d+/);
    assert.match(down.out, /containerd stopped/);
    await poll('kubeling to exit', async () => up.child.exitCode ?? undefined);
    const { added } = compareSnapshots(clean, ours(await takeSnapshot()));
    assert.deepEqual(listSnapshot(added), []);
  });

  it('kubeling down succeeds when nothing is running', async () => {
    const down = await run('down', '--data-dir', dataDir);
    assert.equal(down.code, 0, down.out);
    assert.match((await run('down', '--data-dir', join(dataDir, 'never'))).out, /Nothing is up here/);
  });

  it('kubeling down --all removes nothing from a directory that kubeling never used, and rejects an empty directory name', async () => {
    const other = await mkdtemp(join(tmpdir(), 'klg-other-'));
    try {
      await writeFile(join(other, 'notes'), 'of somebody');
      const down = await run('down', '--all', '--data-dir', other);
      assert.deepEqual([down.code, down.out], [0, `Nothing is up here: ${other} is not changed.\n`]);
      assert.equal(await readFile(join(other, 'notes'), 'utf8'), 'of somebody');
    } finally {
      await rm(other, { recursive: true, force: true });
    }
    const nameless = await run('down', '--all', '--data-dir', '');
    assert.equal(nameless.code, 1);
    assert.match(nameless.out, /--data-dir must be a directory: current value is ""/);
  });

  it('kubeling down works after kubeling up failed because of a missing runtime', async () => {
    const other = await mkdtemp(join(tmpdir(), 'klg-other-'));
    try {
      for (const endpoint of [join(other, 'none.sock'), 'tcp://none']) {
        const up = await run('up', '--data-dir', join(other, 'data'), '--runtime-endpoint', endpoint);
        assert.equal(up.code, 1, up.out);
      }
      const down = await run('down', '--all', '--data-dir', join(other, 'data'));
      assert.equal(down.code, 0, down.out);
      assert.deepEqual(await readdir(other), []);
    } finally {
      await rm(other, { recursive: true, force: true });
    }
  });

  it('kubeling down --all removes the data directory', async () => {
    assert.equal((await run('down', '--all', '--data-dir', dataDir)).code, 0);
    assert.equal((await run('status', '--data-dir', dataDir)).code, 1);
    await assert.rejects(stat(dataDir), { code: 'ENOENT' });
  });
});
