import type { CriClient } from '../cri/index.ts';
import type { CgroupHost, Clock, Logger, MetricRegistry, Random } from '../lib/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import type { HttpGet, ManifestFiles } from '../sources/index.ts';

/** The machine as the kubelet reaches it besides the runtime; simulated as a whole in tests. */
export interface NodeMachine {
  readonly manifests: ManifestFiles;
  readonly httpGet: HttpGet;
  readonly files: RuntimeFiles;
  readonly cgroups: CgroupHost;
  readFile(path: string): Promise<string>;
}

export interface KubeletDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly machine: NodeMachine;
  /** Told each time the runtime was asked how it is: what went wrong, or undefined. */
  readonly runtimeLooked?: (error: unknown) => void;
}
