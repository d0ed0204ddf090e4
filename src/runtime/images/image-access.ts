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

/** Where the machine itself has credentials for images. */
export interface CredentialHost {
  /** The text of a file, or undefined when there is none. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  /** Undefined if files of the current directory must not be used. */
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
  /** Left out on a machine without credentials. */
  readonly credentialHost?: CredentialHost | undefined;
}

const prunePeriodMs = 3_600_000;
/** Of records that changed later than this ago the image may not be listed yet. */
const settlingMs = 300_000;

/** With what pods pull their images, and which of the images on the machine they may use. */
export class ImageAccess {
  readonly credentials: CredentialProvider;
  /** Undefined where every pod may use whatever is there. */
  readonly records: PullRecords | undefined;
  /** Between those who need an image and those who remove it. */
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

  /** Before the first pull. Where records cannot be kept, pulls will fail and say why. */
  async open(): Promise<void> {
    try {
      await this.records?.open();
    } catch (error) {
      this.#deps.logger.error('Cannot read the records of image pulls', error);
    }
  }

  /** What an earlier kubelet was pulling when it ended. As long as this has not been done, such images are verified. */
  async settleLeftovers(signal: AbortSignal): Promise<void> {
    const { records } = this;
    if (records === undefined) return;
    try {
      const { images } = await this.#deps.cri.listImages({}, signal);
      await records.resolveInterrupted(images, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#deps.logger.warn('Cannot settle image pulls of an earlier kubelet', {
        because: describeError(error),
      });
    }
  }

  /** Forgets pulls of images that are gone, at most once an hour; for whoever collects garbage. */
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
      logger.warn('Cannot forget pulls of images that are gone', { because: describeError(error) });
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
