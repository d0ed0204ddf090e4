import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Architecture, imageArchitecture, pauseProgram } from '../../src/containerd/index.ts';

const emulator = '/usr/bin/qemu-aarch64';
const ways: readonly {
  readonly name: string;
  readonly architecture: Architecture;
  readonly wrapper: readonly string[];
}[] = [
  { name: 'on this machine', architecture: imageArchitecture(process.arch), wrapper: [] },
  { name: 'for arm64, emulated', architecture: 'arm64', wrapper: [emulator] },
];

for (const { name, architecture, wrapper } of ways) {
  const isEmulated = wrapper.length > 0;
  const skip =
    isEmulated && !existsSync(emulator)
      ? 'needs qemu-aarch64: the set-up leaves out qemu-user, which is 107 MiB with its dependencies'
      : false;

  describe(`pause program ${name}`, { skip }, () => {
    let dir = '';
    let program = '';
    const started: ChildProcess[] = [];

    before(async () => {
      dir = await mkdtemp(join(tmpdir(), 'pause-'));
      program = join(dir, 'pause');
      await writeFile(program, pauseProgram(architecture));
      await chmod(program, 0o755);
    });
    after(async () => {
      for (const child of started) child.kill('SIGKILL');
      await rm(dir, { recursive: true });
    });

    /**
     * Runs the pause program as PID 1 of a separate process namespace; returns its PID on the host.
     */
    async function startAsFirst(): Promise<{ unshare: ChildProcess; pid: number }> {
      const unshare = spawn('unshare', ['--pid', '--fork', '--kill-child', ...wrapper, program], {
        stdio: 'ignore',
      });
      started.push(unshare);
      let pid = 0;
      await until(async () => {
        [pid = 0] = await childrenOf(unshare.pid ?? 0);
        return pid !== 0 && (await isWaiting(pid));
      });
      return { unshare, pid };
    }

    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      it(`the pause program exits with 0 on ${signal} as PID 1`, async () => {
        const { unshare, pid } = await startAsFirst();
        process.kill(pid, signal);
        const [code, by] = await once(unshare, 'exit');
        assert.deepEqual([code, by], [0, null]);
      });
    }

    it('the pause program ignores signals other than SIGINT and SIGTERM', async () => {
      const { unshare, pid } = await startAsFirst();
      // QEMU handles these signals itself, so under emulation PID 1 is not protected from them.
      const deadly = isEmulated ? [] : (['SIGHUP', 'SIGUSR1'] as const);
      for (const signal of [...deadly, 'SIGCHLD', 'SIGWINCH'] as const) process.kill(pid, signal);
      await until(() => isWaiting(pid));
      assert.equal(unshare.exitCode, null);
      process.kill(pid, 'SIGTERM');
      assert.deepEqual(await once(unshare, 'exit'), [0, null]);
    });

    it('the pause program reaps all orphaned processes of its namespace', async () => {
      const { unshare, pid } = await startAsFirst();
      // The shells exit immediately, so that PID 1 becomes the parent of their children.
      const script = 'for i in 1 2 3 4 5 6 7 8; do sleep 600 & done';
      execFileSync('nsenter', ['--target', String(pid), '--pid', 'sh', '-c', script], { stdio: 'ignore' });
      let orphans: number[] = [];
      await until(async () => {
        orphans = await childrenOf(pid);
        return orphans.length === 8;
      });
      for (const orphan of orphans) process.kill(orphan, 'SIGKILL');
      await until(async () => (await childrenOf(pid)).length === 0);
      assert(orphans.every((orphan) => !existsSync(`/proc/${orphan}`)));
      assert.equal(unshare.exitCode, null);
      process.kill(pid, 'SIGTERM');
      assert.deepEqual(await once(unshare, 'exit'), [0, null]);
    });
  });
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map(Number);
}

/**
 * Whether the process sleeps; if the kernel reports the current system call, it must also be the
 * one in which the pause program waits.
 */
async function isWaiting(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const wchan = await readFile(`/proc/${pid}/wchan`, 'utf8').catch(() => '');
  return /^State:\tS/m.test(status) && (wchan.includes('sigtimedwait') || wchan === '0' || wchan === '');
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await condition())) {
    assert(performance.now() < end, 'it did not happen in time');
    await delay(10);
  }
}
