import type {
  ContainerConfig,
  ContainerState,
  LinuxContainerResources,
  PodSandboxConfig,
} from '../../src/cri/index.ts';
import type { ContainerFiles } from './container-files.ts';
import { Latch } from './latch.ts';
import type { ContainerLog } from './logs.ts';
import type { ProcessEnd, SimulatedProcess } from './process.ts';
import type { ContainerScript, ResourceUsage } from './script.ts';

/** A previous sample of CPU time, needed to compute a rate. */
export interface CpuSample {
  readonly atNs: bigint;
  readonly usedNs: bigint;
}

/**
 * A sandbox record of the runtime.
 *
 *     starting ──> ready ──> not-ready ──> (removed)
 *                    └─────> unknown ────────┘ after a restart that could not load it
 *
 * A starting sandbox is on disk but not listed yet.
 */
export interface SandboxRecord {
  readonly id: string;
  /** The name of the sandbox, reserved while it exists. */
  readonly name: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly createdAt: bigint;
  readonly network: 'host' | 'own';
  state: 'starting' | 'ready' | 'not-ready' | 'unknown';
  /** The PID of the sandbox process; 0 when there is none. */
  pid: number;
  /** The addresses of the sandbox, released when the network is torn down. */
  ips: readonly string[];
  /** A latch that opens when the runtime has observed the exit of the sandbox process. */
  stopped: Latch;
  cpu: CpuSample | undefined;
}

/**
 * A container record of the runtime. Its state follows from the fields that are set:
 *
 *     CREATED ──> RUNNING ──> EXITED ──> (removed)
 *        └───────────────────────┘ the start failed
 *
 * UNKNOWN is any of these after a restart that could not load it.
 */
export interface ContainerRecord {
  readonly id: string;
  readonly name: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly logPath: string;
  readonly imageId: string;
  readonly stopSignal: string;
  readonly launch: LaunchPlan;
  readonly files: ContainerFiles;
  readonly createdAt: bigint;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  message: string;
  resources: LinuxContainerResources;
  /** Set while a start or a removal of the container is in progress. */
  busy: 'starting' | 'removing' | undefined;
  loaded: 'yes' | 'no';
  process: SimulatedProcess | undefined;
  /** The processes of executed commands, which are killed with the container. */
  readonly execs: Set<SimulatedProcess>;
  /** How and when the process exited; set before the runtime has recorded the exit. */
  ended: (ProcessEnd & { readonly at: bigint }) | undefined;
  /** Whether the stop signal was sent; it is sent only once, however often a stop is requested. */
  stopSignalled: boolean;
  stopped: Latch;
  log: ContainerLog | undefined;
  cpu: CpuSample | undefined;
}

/** How the program of the container is started. */
export interface LaunchPlan {
  readonly words: readonly string[];
  readonly env: ReadonlyMap<string, string>;
  readonly workingDir: string;
  readonly script: ContainerScript | undefined;
  readonly usage: ResourceUsage;
  readonly user: string;
}

export function containerState(record: ContainerRecord): ContainerState {
  if (record.loaded === 'no') return 'CONTAINER_UNKNOWN';
  if (record.finishedAt !== 0n) return 'CONTAINER_EXITED';
  return record.startedAt === 0n ? 'CONTAINER_CREATED' : 'CONTAINER_RUNNING';
}

/** Whether the process of the container exists, regardless of the runtime's records. */
export function hasProcess(record: ContainerRecord): boolean {
  return record.process?.alive === true;
}

export function newContainerRecord(
  fixed: Pick<
    ContainerRecord,
    | 'id'
    | 'name'
    | 'sandbox'
    | 'config'
    | 'logPath'
    | 'imageId'
    | 'stopSignal'
    | 'launch'
    | 'files'
    | 'createdAt'
    | 'resources'
  >,
): ContainerRecord {
  return {
    ...fixed,
    startedAt: 0n,
    finishedAt: 0n,
    exitCode: 0,
    reason: '',
    message: '',
    busy: undefined,
    loaded: 'yes',
    process: undefined,
    execs: new Set(),
    ended: undefined,
    stopSignalled: false,
    stopped: new Latch(),
    log: undefined,
    cpu: undefined,
  };
}

export function sandboxFacts({ id, config }: SandboxRecord) {
  const { uid = '', name = '', namespace = '', attempt = 0 } = config.metadata ?? {};
  return { id, podUid: uid, podName: name, podNamespace: namespace, attempt };
}

export function containerFacts({ id, sandbox, config }: ContainerRecord) {
  const { name = '', attempt = 0 } = config.metadata ?? {};
  return { id, sandboxId: sandbox.id, podUid: sandbox.config.metadata?.uid ?? '', name, attempt };
}
