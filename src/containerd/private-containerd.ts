import { mkdir, open, realpath, rmdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  type Clock,
  KubelingError,
  logSize,
  ProcessTable,
  type Random,
  rotateLog,
  withLockFile,
} from '../lib/index.ts';
import type { CgroupDriver, Snapshotter } from './config.ts';
import { ImageStore } from './image-store.ts';
import { readInstance } from './instance-file.ts';
import { listRules, removeRules, sandboxesWithRules } from './iptables.ts';
import {
  type LaunchDeps,
  type Launched,
  launch,
  type Probe,
  probeDeadlineMs,
  tryProbe,
  waitReady,
} from './launch.ts';
import { containerdLayout, type Layout } from './layout.ts';
import { defaultPaths, type TeardownOptions } from './leftover-files.ts';
import {
  childEnvironment,
  commandRunner,
  type Environment,
  findProgram,
  findTools,
  programDirs,
  type Run,
} from './machine.ts';
import { findOwnProcess, type OwnProcess, removeTraces, writePidFile } from './own-process.ts';
import { prepare } from './prepare.ts';
import { socketState } from './runtime-socket.ts';
import { removeLeftovers, type TeardownReport } from './teardown.ts';
import { parseContainerdVersion } from './version.ts';

const writableByOthers = 0o022;

export interface PrivateContainerdOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly random: Random;
  /** The environment, for the search path; only a few variables are passed on to containerd. */
  readonly env: Environment;
  /** The cgroup driver of the kubelet; systemd is used only where it is the init process. */
  readonly cgroupDriver: CgroupDriver;
  /**
   * The path of containerd if it is not found in the PATH. Its shim and client are searched in the
   * same directory first.
   */
  readonly containerd?: string;
  /** The subnet of pods, for example 10.128.4.0/22. */
  readonly subnet?: string;
  /** Checks whether containerd serves; by default runs `ctr version`. */
  readonly probe?: Probe;
  readonly readyDeadlineMs?: number;
}

/** The containerd that runs, and whether it was started or adopted. */
export interface RunningContainerd {
  readonly origin: 'started' | 'adopted';
  readonly pid: number;
  readonly version: string;
  readonly socket: string;
  /** The name of the CNI network and of its bridge. */
  readonly network: string;
  readonly subnet: string;
  readonly snapshotter: Snapshotter;
}

export type ContainerdHealth =
  | { readonly state: 'serving'; readonly pid: number; readonly version: string }
  | { readonly state: 'unresponsive'; readonly pid: number; readonly why: unknown }
  | { readonly state: 'not-running' };

const defaultReadyDeadlineMs = 60_000;
const stopDeadlineMs = 15_000;
const killDeadlineMs = 10_000;
const socketReleaseMs = 3_000;

/** Creates the directory and returns its containerd without starting it. */
export async function openPrivateContainerd(options: PrivateContainerdOptions): Promise<PrivateContainerd> {
  const requested = resolve(options.dataDir);
  containerdLayout(requested);
  await makeDirectory(requested, 0o755);
  // The path is canonicalized, because the names of bridge and sockets are derived from it.
  const layout = containerdLayout(await realpath(requested));
  await makeDirectory(layout.dir, 0o711);
  return new PrivateContainerd(layout, options);
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode }).catch((error) => {
    throw new KubelingError('FILE_WRITE', `Cannot make the directory ${path}: ${error.code}`, {
      cause: error,
    });
  });
}

/**
 * The containerd of one data directory. It outlives this process: the next process finds it by its
 * PID file and adopts it.
 *
 *   not running --start--> starting --probe--> serving
 *   starting --exit, deadline--> not running
 *   not running --started by another process, adopt--> serving
 *   serving --stop, teardown--> not running
 *
 * A lock file protects state changes, so several processes and concurrent calls are safe.
 */
export class PrivateContainerd {
  readonly layout: Layout;
  readonly #options: PrivateContainerdOptions;
  readonly #processes = new ProcessTable();
  readonly #dirs: readonly string[];
  readonly #env: Environment;
  readonly #run: Run;

  constructor(layout: Layout, options: PrivateContainerdOptions) {
    this.layout = layout;
    this.#options = options;
    this.#dirs = programDirs(options.env, options.containerd);
    this.#env = childEnvironment(options.env, this.#dirs);
    this.#run = commandRunner(options.clock, this.#env);
  }

  /**
   * Adopts the running containerd if it serves, else starts a new process in its place. Safe to repeat.
   * An aborted call may leave containerd running; the next call finds it.
   */
  async ensureRunning(signal: AbortSignal): Promise<RunningContainerd> {
    return await this.#locked(async () => {
      const own = await findOwnProcess(this.layout, this.#processes);
      if (own === undefined) return await this.#start(signal);
      const known = await this.#waitServing(own, signal).catch(async () => {
        signal.throwIfAborted();
        await this.#stop(own, signal);
      });
      return known === undefined ? await this.#start(signal) : await this.#running('adopted', known, signal);
    }, signal);
  }

  /** Starts containerd; rejects if it is already running. */
  async start(signal: AbortSignal): Promise<RunningContainerd> {
    return await this.#locked(async () => {
      const own = await findOwnProcess(this.layout, this.#processes);
      if (own === undefined) return await this.#start(signal);
      throw new KubelingError(
        'CONTAINERD_RUNNING',
        `Cannot start containerd under ${this.layout.dataDir} as it runs already with process id ${own.pid}`,
      );
    }, signal);
  }

  /** Returns the running containerd once it serves; undefined if none runs. */
  async adopt(signal: AbortSignal): Promise<RunningContainerd | undefined> {
    return await this.#locked(async () => {
      const own = await findOwnProcess(this.layout, this.#processes);
      if (own === undefined) return undefined;
      return await this.#running('adopted', await this.#waitServing(own, signal), signal);
    }, signal);
  }

  /** Probes containerd once; may truncate the log of containerd if it exceeds the size limit. */
  async health(signal: AbortSignal): Promise<ContainerdHealth> {
    const own = await findOwnProcess(this.layout, this.#processes);
    if (own === undefined) return { state: 'not-running' };
    await rotateLog(this.layout.log, 'running');
    const why = await tryProbe(await this.#launchDeps(), probeDeadlineMs, signal);
    const { pid, version } = own;
    return why === undefined ? { state: 'serving', pid, version } : { state: 'unresponsive', pid, why };
  }

  /**
   * Stops containerd only: containers keep running under their shims, and the next start finds
   * them.
   */
  async stop(signal: AbortSignal): Promise<'stopped' | 'not-running'> {
    return await this.#locked(() => this.#stopIfRunning(signal), signal);
  }

  /**
   * Stops containerd and removes everything it left on the machine. Pods should be removed through
   * CRI before; running containers are killed.
   */
  async teardown(options: TeardownOptions, signal: AbortSignal): Promise<TeardownReport> {
    const report = await this.#locked(async () => {
      const containerd = await this.#stopIfRunning(signal);
      const [ip, iptables] = await Promise.all(
        ['ip', 'iptables'].map((name) => findProgram(name, this.#dirs)),
      );
      const { clock } = this.#options;
      const deps = { ...this.#base(), clock, places: defaultPaths, ip, iptables };
      return { containerd, ...(await removeLeftovers(options, deps, signal)) };
    }, signal);
    // The directory can be removed if the lock was its last file. A failure is ignored, because
    // another process may use the directory.
    if (options.images === 'remove') await rmdir(this.layout.dir).catch(() => {});
    return report;
  }

  /**
   * Returns the IDs of all sandboxes with firewall rules in this network, including deleted
   * sandboxes.
   */
  async sandboxesWithRules(signal: AbortSignal): Promise<readonly string[]> {
    const iptables = await findProgram('iptables', this.#dirs);
    if (iptables === undefined) return [];
    return sandboxesWithRules(await listRules(iptables, this.#run, signal), this.layout.network);
  }

  /** Removes the firewall rules of these sandboxes; returns the number of iptables commands. */
  async removeRulesOf(sandboxIds: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
    const iptables = await findProgram('iptables', this.#dirs);
    if (iptables === undefined) return 0;
    const isMeant = (id: string) => sandboxIds.has(id);
    return (await removeRules(iptables, this.layout.network, this.#run, signal, isMeant)).removed.length;
  }

  /** Returns access to the images of the running containerd. */
  async images(): Promise<ImageStore> {
    const { ctr } = await findTools(this.#dirs, this.#options.containerd);
    const { snapshotter = 'overlayfs' } = await readInstance(this.layout.instanceFile);
    return new ImageStore({ ...this.#base(), ctr, snapshotter, random: this.#options.random });
  }

  async #start(signal: AbortSignal): Promise<RunningContainerd> {
    await this.#refuseToStart(signal);
    const { cgroupDriver, random, subnet } = this.#options;
    const tools = await findTools(this.#dirs, this.#options.containerd);
    const { version } = await prepare({ ...this.#base(), tools, random, cgroupDriver, subnet }, signal);
    const deps = await this.#launchDeps();
    const program = { file: tools.containerd, version: version.text, env: this.#env };
    const launched = await launch(program, deps);
    try {
      await waitReady(launched, deps, signal);
    } catch (error) {
      // A partly started containerd is stopped, unless the call was aborted.
      if (!signal.aborted) await this.#stop(launched.own, signal);
      throw error;
    }
    return await this.#running('started', launched.own, signal);
  }

  async #refuseToStart(signal: AbortSignal): Promise<void> {
    if (process.getuid?.() !== 0) {
      throw new KubelingError(
        'CONTAINERD_NOT_ROOT',
        'Cannot run a private containerd as it must be started by root',
      );
    }
    const { socket } = this.layout;
    if (!(await this.#isSocketHeld(signal))) return;
    throw new KubelingError(
      'CONTAINERD_SOCKET_TAKEN',
      `Cannot start containerd as another program already listens on ${socket}`,
    );
  }

  /**
   * Waits until the socket is closed, because a killed process disappears from the process list
   * before that. Returns whether another process still holds it.
   */
  async #isSocketHeld(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const end = clock.monotonicMs() + socketReleaseMs;
    while ((await socketState(this.layout.socket, clock, signal)).state === 'accepting') {
      if (clock.monotonicMs() >= end) return true;
      await clock.sleep(20, signal);
    }
    return false;
  }

  async #waitServing(own: OwnProcess, signal: AbortSignal): Promise<OwnProcess> {
    const known = own.version === '' ? await this.#persistInstance(own, signal) : own;
    const launched: Launched = { own: known, logStart: Math.max(0, (await logSize(this.layout.log)) - 4096) };
    await waitReady(launched, await this.#launchDeps(), signal);
    await rotateLog(this.layout.log, 'running');
    return known;
  }

  /**
   * Restores a lost PID file, with the version of the running program, which may differ from the
   * one on disk.
   */
  async #persistInstance(own: OwnProcess, signal: AbortSignal): Promise<OwnProcess> {
    const known = { ...own, version: await this.#versionOf(own, signal) };
    await writePidFile(this.layout, known);
    return known;
  }

  /**
   * Returns the version that the program file of the running containerd prints. Executes the file
   * only if only root can write it, and through an open descriptor, so that the file cannot be
   * replaced after this check.
   */
  async #versionOf({ pid }: OwnProcess, signal: AbortSignal): Promise<string> {
    await using program = await open(`/proc/${pid}/exe`);
    const { uid, mode } = await program.stat();
    if (uid !== 0 || (mode & writableByOthers) !== 0) {
      throw new KubelingError(
        'CONTAINERD_SOCKET_TAKEN',
        `Cannot adopt process ${pid} as our containerd as users other than root can write its program`,
      );
    }
    const { stdout } = await this.#run(`/proc/${process.pid}/fd/${program.fd}`, ['--version'], signal);
    return parseContainerdVersion(stdout).text;
  }

  async #running(
    origin: RunningContainerd['origin'],
    { pid, version }: OwnProcess,
    signal: AbortSignal,
  ): Promise<RunningContainerd> {
    await (await this.images()).ensurePause(signal);
    const { subnet = '', snapshotter = 'overlayfs' } = await readInstance(this.layout.instanceFile);
    const { socket, network } = this.layout;
    return { origin, pid, version, socket, network, subnet, snapshotter };
  }

  async #stopIfRunning(signal: AbortSignal): Promise<'stopped' | 'not-running'> {
    const own = await findOwnProcess(this.layout, this.#processes);
    if (own === undefined) {
      await this.#removeStaleTraces(signal);
      return 'not-running';
    }
    await this.#stop(own, signal);
    return 'stopped';
  }

  async #stop(own: OwnProcess, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await this.#processes.signal(own, 'SIGTERM');
    // A suspended process must be resumed to handle the signal.
    await this.#processes.signal(own, 'SIGCONT');
    if ((await this.#processes.waitForExit([own], { clock, ms: stopDeadlineMs }, signal)).length > 0) {
      await this.#processes.signal(own, 'SIGKILL');
      const left = await this.#processes.waitForExit([own], { clock, ms: killDeadlineMs }, signal);
      if (left.length > 0) {
        throw new KubelingError('CONTAINERD_STOP', `Cannot stop containerd: process ${own.pid} does not end`);
      }
    }
    await removeTraces(this.layout);
  }

  /**
   * Removes the PID file and sockets of a killed containerd. A socket that accepts connections
   * belongs to another process and is kept.
   */
  async #removeStaleTraces(signal: AbortSignal): Promise<void> {
    const { state } = await socketState(this.layout.socket, this.#options.clock, signal);
    if (state !== 'accepting') await removeTraces(this.layout);
  }

  #base() {
    return {
      layout: this.layout,
      run: this.#run,
      processes: this.#processes,
      procDir: '/proc',
      sysDir: '/sys',
    };
  }

  async #launchDeps(): Promise<LaunchDeps> {
    const { clock, readyDeadlineMs = defaultReadyDeadlineMs } = this.#options;
    const probe = this.#options.probe ?? (await this.#versionProbe());
    return { ...this.#base(), clock, probe, readyDeadlineMs };
  }

  async #versionProbe(): Promise<Probe> {
    const ctr = (await findProgram('ctr', this.#dirs)) ?? 'ctr';
    return async (signal) => {
      await this.#run(ctr, ['-a', this.layout.socket, 'version'], signal);
    };
  }

  async #locked<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { clock, random, readyDeadlineMs = defaultReadyDeadlineMs } = this.#options;
    await makeDirectory(this.layout.dir, 0o711);
    // How long to wait for the lock: the process that holds it may be replacing containerd. It then
    // waits in vain for the old containerd to serve, stops it and starts a new one.
    const waitMs = 2 * readyDeadlineMs + stopDeadlineMs + killDeadlineMs;
    return await withLockFile(
      this.layout.lockFile,
      { clock, random, processes: this.#processes, waitMs },
      work,
      signal,
    );
  }
}
