import { posix } from 'node:path';
import type { NodeJournal } from '../journal/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import type { PodSource, PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import type { ManifestFiles } from './file-scan.ts';
import { FileSource } from './file-source.ts';
import type { HttpGet } from './http-source.ts';
import { HttpSource } from './http-source.ts';
import { ManifestCheckpoints } from './manifest-checkpoints.ts';
import { StaticUids } from './manifest-claims.ts';
import type { ManifestSourceOptions } from './manifest-source.ts';
import type { PodConfig } from './pod-config.ts';
import { describeProblem, type SourceProblem } from './problems.ts';

/** The settings of the kubelet that concern its pod sources. */
export interface PodSourcesSettings {
  readonly nodeName: string;
  readonly rootDir: string;
  /** Path of the static pod manifests; empty for none. */
  readonly staticPodPath: string;
  /** URL of the static pod manifest; empty for none. */
  readonly staticPodUrl: string;
  readonly staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  readonly apiPods?: 'expected' | 'none';
  readonly manifestReferences?: 'allowed' | 'refused';
  readonly fileCheckMs: number;
  readonly httpCheckMs: number;
  readonly isGateEnabled: (gate: string) => boolean;
}

export interface PodSourcesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly machine: {
    readonly manifests: ManifestFiles;
    readonly httpGet: HttpGet;
    readonly files: RuntimeFiles;
  };
  readonly config: PodConfig;
  readonly node: NodeJournal;
  /** Whether this node has admitted the pod since the machine was booted. */
  readonly ranHere: (uid: PodUid) => boolean;
}

/** Names of the pod sources that the settings require. */
export function sourceNames({
  staticPodPath,
  staticPodUrl,
  apiPods,
}: PodSourcesSettings): readonly PodSource[] {
  return [
    ...(staticPodPath === '' ? [] : (['file'] as const)),
    ...(staticPodUrl === '' ? [] : (['http'] as const)),
    ...(apiPods === 'expected' ? (['api'] as const) : []),
  ];
}

/** Creates the pod sources that read manifests, each with a name for log messages. */
export function manifestSources(
  settings: PodSourcesSettings,
  deps: PodSourcesDeps,
): ReadonlyMap<string, FileSource | HttpSource> {
  const { clock, logger, machine, config, node } = deps;
  const base = {
    nodeName: settings.nodeName,
    rules: {
      enabled: settings.isGateEnabled,
      apiReferences: settings.manifestReferences ?? 'refused',
    },
    clock,
    logger,
    uids: new StaticUids(deps.ranHere),
    onProblem: (problem: SourceProblem) =>
      node.event({ type: 'Warning', reason: 'FailedValidation', message: describeProblem(problem) }),
    onResolved: (path: string) => node.note(`${path} has no problem any more`),
  } as const satisfies Partial<ManifestSourceOptions>;
  const lastGood = (source: 'file' | 'http') =>
    new ManifestCheckpoints({
      files: machine.files,
      directory: posix.join(settings.rootDir, 'last-good-manifests', source),
      logger,
    });
  const file = new FileSource({
    ...base,
    path: settings.staticPodPath,
    files: machine.manifests,
    resyncMs: settings.fileCheckMs,
    lastGood: lastGood('file'),
    setPods: (pods) => config.set('file', pods),
  });
  const http = new HttpSource({
    ...base,
    url: settings.staticPodUrl,
    headers: settings.staticPodUrlHeader,
    get: machine.httpGet,
    resyncMs: settings.httpCheckMs,
    lastGood: lastGood('http'),
    setPods: (pods) => config.set('http', pods),
  });
  return new Map<string, FileSource | HttpSource>([
    ...(settings.staticPodPath === '' ? [] : [['file source', file] as const]),
    ...(settings.staticPodUrl === '' ? [] : [['http source', http] as const]),
  ]);
}
