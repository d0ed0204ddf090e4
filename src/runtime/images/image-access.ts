import type { CriClient } from '../../cri/index.ts';
import { type Clock, describeError, type Logger, type MetricRegistry } from '../../lib/index.ts';
import type { PodJournal } from '../../pods/index.ts';
import type { RuntimeFiles } from '../containers/runtime-files.ts';
import { NodeDockerConfig } from './credentials/docker-config.ts';
import type { RunPlugin } from './credentials/exec-plugin.ts';
import type { CredentialProvider } from './credentials/keyring.ts';
import {
  noServiceAccounts,
  PluginProvider,
  type PluginSpec,
  pluginMetrics,
  type ServiceAccounts,
} from './credentials/plugin-provider.ts';
import { noPullSecrets, PodCredentials, type PullSecrets } from './credentials/pod-credentials.ts';
import { ImageLeases } from './gc/image-leases.ts';
import { PullRecords, type VerificationPolicy } from './pull-records/pull-records.ts';
import { RecordFiles } from './pull-records/record-files.ts';

/** The sources of the node's own image pull credentials. */
export interface CredentialHost {
  /** Reads the text of a file; undefined when it is missing. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  /** The current directory; undefined if its docker config files must not be used. */
  readonly workingDir: string | undefined;
  readonly homeDir: string | undefined;
  readonly runPlugin: RunPlugin;
}

export interface ImageAccessSettings {
  readonly rootDir: string;
  readonly images?:
    | {
        readonly verification: VerificationPolicy | undefined;
        readonly plugins:
          | { readonly binDir: string; readonly specs: readonly PluginSpec[]; readonly fingerprint: string }
          | undefined;
      }
    | undefined;
}

export interface ImageAccessDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly journal: PodJournal;
  readonly cri: Pick<CriClient, 'listImages'>;
  readonly machine: { readonly files: RuntimeFiles };
  readonly cluster?: { readonly secrets: PullSecrets; readonly serviceAccounts: ServiceAccounts } | undefined;
  /** Provides the credentials of the node itself; undefined on a node without them. */
  readonly credentialHost?: CredentialHost | undefined;
}

const prunePeriodMs = 3_600_000;
/** Pull records changed within this time are kept, because their image may not be listed yet. */
const settlingMs = 300_000;

/** Provides pull credentials of pods, and checks access to present images. */
export class ImageAccess {
  readonly credentials: CredentialProvider;
  /**
   * The pull records that restrict access to images; undefined when every pod may use every present
   * image.
   */
  readonly records: PullRecords | undefined;
  /** The image leases, shared by image pulls and image garbage collection. */
  readonly leases = new ImageLeases();
  readonly #deps: ImageAccessDeps;
  #prunedAtMs: number | undefined;

  constructor(settings: ImageAccessSettings, deps: ImageAccessDeps) {
    const { clock, logger, journal, cluster } = deps;
    const { rootDir, images } = settings;
    this.#deps = deps;
    const docker = deps.credentialHost && nodeDockerConfig(rootDir, deps, deps.credentialHost);
    const nodeLogins = async () => (await docker?.get()) ?? new Map();
    this.credentials = new PodCredentials({
      journal,
      secrets: cluster?.secrets ?? noPullSecrets,
      nodeLogins,
      plugins: pluginsOf(settings, deps),
    });
    const policy = images?.verification;
    const files = new RecordFiles({ files: deps.machine.files, logger, rootDir });
    this.records = policy && new PullRecords({ clock, logger, files, policy });
  }

  /**
   * Reads the pull records; called before the first pull. Without writable records, pulls fail with
   * the reason.
   */
  async open(): Promise<void> {
    try {
      await this.records?.open();
    } catch (error) {
      this.#deps.logger.error('Failed to read image pull records', error);
    }
  }

  /**
   * Completes the records of pulls that a previous kubelet did not finish. Until then, access to
   * the images of these pulls is verified by a pull.
   */
  async resolveInterruptedPulls(signal: AbortSignal): Promise<void> {
    const { records } = this;
    if (records === undefined) return;
    try {
      const { images } = await this.#deps.cri.listImages({}, signal);
      await records.resolveInterrupted(images, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#deps.logger.warn('Failed to resolve interrupted image pulls', {
        because: describeError(error),
      });
    }
  }

  /**
   * Removes the pull records of removed images, at most once an hour; called by image garbage
   * collection.
   */
  async prune(signal: AbortSignal): Promise<void> {
    const { records } = this;
    const { clock, cri, logger } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (records === undefined || nowMs - (this.#prunedAtMs ?? -Infinity) < prunePeriodMs) return;
    this.#prunedAtMs = nowMs;
    try {
      const changedBeforeMs = clock.now() - settlingMs;
      const { images } = await cri.listImages({}, signal);
      await records.prune(images, changedBeforeMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      logger.warn('Failed to remove image pull records', { because: describeError(error) });
    }
  }
}

function nodeDockerConfig(
  rootDir: string,
  { clock, logger }: ImageAccessDeps,
  { readFile, workingDir, homeDir }: CredentialHost,
): NodeDockerConfig {
  return new NodeDockerConfig({ clock, logger, rootDir, readFile, workingDir, homeDir });
}

function pluginsOf({ images }: ImageAccessSettings, deps: ImageAccessDeps): readonly PluginProvider[] {
  const { clock, logger, metrics, credentialHost: host, cluster } = deps;
  const serviceAccounts = cluster?.serviceAccounts ?? noServiceAccounts;
  const plugins = images?.plugins;
  if (plugins === undefined || host === undefined) return [];
  const { binDir, specs, fingerprint } = plugins;
  const observer = pluginMetrics(metrics, fingerprint);
  const shared = { clock, logger, binDir, serviceAccounts, observer, run: host.runPlugin };
  return specs.map((spec) => new PluginProvider(spec, shared));
}
