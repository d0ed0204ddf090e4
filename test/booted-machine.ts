import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { networkName, removeTopCgroup } from '../src/containerd/index.ts';
import { realClock } from '../src/lib/index.ts';
import { eventually } from './kubeling-node.ts';

const kubeling = fileURLToPath(new URL('../kubeling', import.meta.url));
const namespaces = ['--mount', '--net', '--pid', '--ipc', '--uts'];
const clock = realClock();
const signal = new AbortController().signal;

/**
 * The script of process 1 of a freshly booted machine: with its own processes, mounts, network and
 * boot ID, and an empty /run, on the disk of the host. One interface has the default route, because
 * kubeling requires an address for its node.
 */
const boot = `set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$1/boot-id" /proc/sys/kernel/random/boot_id
mount --make-rshared /
ip link set lo up
ip link add outside type veth peer name uplink
ip addr add 10.215.0.1/24 dev uplink
ip link set outside up
ip link set uplink up
ip route add default via 10.215.0.2
echo booted
exec sleep infinity`;

/** A program that runs on the simulated machine, and its output so far. */
export interface MachineProcess {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Waits until the output of the program matches; fails when the program exits before. */
  says(pattern: RegExp): Promise<void>;
}

/** A simulated machine that can be booted, lose power, and be booted again with the same disk. */
export class BootedMachine implements AsyncDisposable {
  readonly scratch: string;
  readonly #dataDirs = new Set<string>();
  /** The PID of process 1 on the host, and the `unshare` program that waits for it. */
  #first: number | undefined;
  #waiting: ChildProcess | undefined;

  static async open(): Promise<BootedMachine> {
    return new BootedMachine(await mkdtemp(join(tmpdir(), 'klg-boot-')));
  }

  private constructor(scratch: string) {
    this.scratch = scratch;
  }

  async boot(): Promise<void> {
    await writeFile(join(this.scratch, 'boot-id'), `${randomUUID()}\n`);
    const words = [...namespaces, '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
    const child = spawn('unshare', [...words, 'sh', '-c', boot, 'sh', this.scratch], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk) => {
      errors += String(chunk);
    });
    this.#waiting = child;
    const [line] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    assert.equal(String(line), 'booted\n', `the machine does not boot: ${errors}`);
    this.#first = Number(await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'));
  }

  /**
   * Kills all processes of the machine at the same time; everything that is not on its disk is
   * lost.
   */
  async losePower(): Promise<void> {
    const [first, waiting] = [this.#first, this.#waiting];
    if (first === undefined || waiting === undefined) return;
    this.#first = undefined;
    const gone = once(waiting, 'exit');
    process.kill(first, 'SIGKILL');
    // The kernel kills the other processes of the PID namespace before process 1 exits.
    await gone;
    for (const dataDir of this.#dataDirs)
      await removeTopCgroup(`/${networkName(dataDir)}`, { clock, procDir: '/proc' }, signal);
  }

  /**
   * Returns the path of a data directory on the disk; `losePower` removes the cgroups of its pods.
   */
  dataDirectory(name: string): string {
    const path = join(this.scratch, name);
    this.#dataDirs.add(path);
    return path;
  }

  start(file: string, ...args: readonly string[]): MachineProcess {
    const child = spawn('nsenter', this.#inside(file, args));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += String(chunk);
      });
    }
    return {
      child,
      output: () => output,
      says: async (pattern) => {
        await eventually(
          `${file} to say ${pattern}`,
          async () => {
            if (pattern.test(output)) return true;
            assert.equal(child.exitCode, null, `it ended before it said ${pattern}:\n${output}`);
            return undefined;
          },
          120_000,
          () => output,
        );
      },
    };
  }

  startKubeling(...args: readonly string[]): MachineProcess {
    return this.start(kubeling, ...args);
  }

  /** Runs a command on the machine. Returns its output; rejects when it fails. */
  run(file: string, ...args: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      execFile('nsenter', this.#inside(file, args), { timeout: 60_000 }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${error.message}\n${stdout}${stderr}`));
      });
    });
  }

  runKubeling(...args: readonly string[]): Promise<string> {
    return this.run(kubeling, ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.losePower();
    await rm(this.scratch, { recursive: true, force: true });
  }

  #inside(file: string, args: readonly string[]): string[] {
    assert.ok(this.#first, 'the machine is booted');
    return ['--target', `${this.#first}`, '--all', '--', file, ...args];
  }
}
