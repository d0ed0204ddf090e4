import { networkName, openPrivateContainerd, type PrivateContainerd } from '../../containerd/index.ts';
import type { CriClient } from '../../cri/index.ts';
import { type CriObserver, createCriClient, wireTransport } from '../../cri/index.ts';
import { describeError } from '../../lib/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { CommandContext } from '../command.ts';
import type { DataDirectory } from './data-directory.ts';

/** The label that names the data directory to which a sandbox or container belongs. */
const dataDirectoryLabel = 'kubeling.dev/home';
/** The annotation with the path of the data directory, for users. */
const dataDirAnnotation = 'kubeling.dev/data-dir';

type Labels = Readonly<Record<string, string>>;

/**
 * Returns a name derived from the path, so that a recreated directory has the same name and finds
 * its pods again.
 */
export function dataDirectoryName({ dataDir }: Pick<DataDirectory, 'dataDir'>): string {
  return networkName(dataDir);
}

/** Returns the parent cgroup of all pods of the data directory, whatever runtime they use. */
export function dataDirectoryCgroup(directory: Pick<DataDirectory, 'dataDir'>): string {
  return `/${dataDirectoryName(directory)}`;
}

export interface OwnPodsOptions {
  readonly directory: Pick<DataDirectory, 'dataDir'>;
  /**
   * The owner of pods without the label: this data directory in kubeling's private containerd,
   * another kubelet in any other runtime.
   */
  readonly unnamed: 'ours' | 'of-others';
}

/**
 * Restricts a runtime client to the pods of one data directory. Created pods get its label, and
 * pods of other directories are filtered out of lists, so that no cleanup removes them. Calls by ID
 * need no filter, because IDs are only known from lists.
 */
export function onlyOwnPods(cri: CriClient, { directory, unnamed }: OwnPodsOptions): CriClient {
  const name = dataDirectoryName(directory);
  const isOurs = ({ labels = {} }: { readonly labels?: Labels | undefined } = {}) => {
    const { [dataDirectoryLabel]: owner } = labels;
    return owner === undefined ? unnamed === 'ours' : owner === name;
  };
  const named = (labels: MessageInit<Labels> | undefined) => ({ ...labels, [dataDirectoryLabel]: name });
  return {
    ...cri,
    runPodSandbox: ({ config, ...request }, signal) => {
      const annotations = { ...config?.annotations, [dataDirAnnotation]: directory.dataDir };
      const ours = { ...config, labels: named(config?.labels), annotations };
      return cri.runPodSandbox({ ...request, config: ours }, signal);
    },
    createContainer: ({ config, ...request }, signal) =>
      cri.createContainer({ ...request, config: { ...config, labels: named(config?.labels) } }, signal),
    listPodSandbox: async (request, signal) => {
      const response = await cri.listPodSandbox(request, signal);
      return { ...response, items: response.items.filter(isOurs) };
    },
    listContainers: async (request, signal) => {
      const response = await cri.listContainers(request, signal);
      return { ...response, containers: response.containers.filter(isOurs) };
    },
    listContainerStats: async (request, signal) => {
      const response = await cri.listContainerStats(request, signal);
      return { ...response, stats: response.stats.filter(({ attributes }) => isOurs(attributes)) };
    },
  };
}

/**
 * Other users of the same runtime: other data directories, and the number of pods without the
 * label.
 */
export interface OtherPods {
  readonly homes: readonly string[];
  readonly unnamed: number;
}

export async function findOtherPods(
  cri: Pick<CriClient, 'listPodSandbox'>,
  directory: Pick<DataDirectory, 'dataDir'>,
  signal: AbortSignal,
): Promise<OtherPods> {
  const { items } = await cri.listPodSandbox({}, signal);
  const foreign = items.filter(({ labels }) => labels[dataDirectoryLabel] !== dataDirectoryName(directory));
  const [named, unnamed] = [
    foreign.filter(({ labels }) => labels[dataDirectoryLabel] !== undefined),
    foreign.filter(({ labels }) => labels[dataDirectoryLabel] === undefined),
  ];
  const homes = new Set(
    named.map(
      ({ labels, annotations }) => annotations[dataDirAnnotation] ?? labels[dataDirectoryLabel] ?? '',
    ),
  );
  return { homes: [...homes].sort(), unnamed: unnamed.length };
}

/** Returns access to the private containerd of this data directory, whether or not it runs. */
export async function privateContainerd(
  directory: DataDirectory,
  context: CommandContext,
): Promise<PrivateContainerd> {
  const { clock, random, env } = context;
  return await openPrivateContainerd({
    dataDir: directory.dataDir,
    clock,
    random,
    env,
    cgroupDriver: 'cgroupfs',
  });
}

export function connectRuntime(
  endpoint: string,
  { clock, random }: CommandContext,
  observer: CriObserver = { called() {} },
): CriClient {
  return createCriClient({ transport: wireTransport({ endpoint, clock, random }), clock, observer });
}

export interface RuntimeWatcherDeps {
  readonly print: (text: string) => void;
  /** Restarts the private containerd; undefined for any other runtime. Calls never overlap. */
  readonly restart: (() => Promise<unknown>) | undefined;
}

/**
 * Reports once when the runtime becomes unavailable and once when it recovers. Restarts the private
 * containerd until it responds.
 */
export class RuntimeWatcher {
  readonly #deps: RuntimeWatcherDeps;
  #state: 'there' | 'away' = 'there';
  #restart: 'idle' | 'under-way' | 'failed' = 'idle';

  constructor(deps: RuntimeWatcherDeps) {
    this.#deps = deps;
  }

  /** Handles the result of a runtime check: the error, or undefined for success. */
  observed(error: unknown): void {
    const state = error === undefined ? 'there' : 'away';
    if (state !== this.#state)
      this.#deps.print(state === 'there' ? 'answers again' : `does not respond: ${describeError(error)}`);
    this.#state = state;
    if (state === 'away') this.#restartRuntime();
    else if (this.#restart === 'failed') this.#restart = 'idle';
  }

  /**
   * Restarts the private containerd. A failed start is retried at each check, because its cause may
   * disappear; only the first failure is reported.
   */
  #restartRuntime(): void {
    const { restart, print } = this.#deps;
    if (restart === undefined || this.#restart === 'under-way') return;
    const isReported = this.#restart === 'failed';
    this.#restart = 'under-way';
    restart().then(
      () => {
        this.#restart = 'idle';
      },
      (cause) => {
        if (!isReported) print(`cannot be restarted, retrying: ${describeError(cause)}`);
        this.#restart = 'failed';
      },
    );
  }
}
