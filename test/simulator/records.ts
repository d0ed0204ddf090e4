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

/** An earlier look at the processor time of something, to tell a rate from. */
export interface CpuSample {
  readonly atNs: bigint;
  readonly usedNs: bigint;
}

/**
 * A sandbox as the runtime keeps it.
 *
 *     starting ──> ready ──> not-ready ──> (removed)
 *                    └─────> unknown ────────┘   after a restart that could not load it
 *
 * A starting sandbox is on disk but in no list yet.
 */
export interface SandboxRecord {
  readonly id: string;
  /** Reserved for it alone while it exists. */
  readonly name: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly createdAt: bigint;
  readonly network: 'host' | 'own';
  state: 'starting' | 'ready' | 'not-ready' | 'unknown';
  /** Zero when there is no process. */
  pid: number;
  /** Given back when the network is torn down; never more than a few. */
  ips: readonly string[];
  /** Opens when the runtime has seen the end of the process. */
  stopped: Latch;
  cpu: CpuSample | undefined;
}

/**
 * A container as the runtime keeps it. Its state follows from what is set:
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
  /** A start or a removal is under way. */
  busy: 'starting' | 'removing' | undefined;
  loaded: 'yes' | 'no';
  process: SimulatedProcess | undefined;
  /** Commands run inside; they end with it. */
  readonly execs: Set<SimulatedProcess>;
  /** How and when the process ended, until the runtime has taken note of it. */
  ended: (ProcessEnd & { readonly at: bigint }) | undefined;
  /** The stop signal is sent once, however often a stop is asked for. */
  stopSignalled: boolean;
  stopped: Latch;
  log: ContainerLog | undefined;
  cpu: CpuSample | undefined;
}

/** What a container will run. */
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

/** Whether the process of the container is really there, whatever the runtime knows. */
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
