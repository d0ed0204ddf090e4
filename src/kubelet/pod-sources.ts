import { posix } from 'node:path';
import type { Clock, Logger } from '../lib/index.ts';
import type { PodSource, PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import {
  describeProblem,
  FileSource,
  type HttpGet,
  HttpSource,
  ManifestCheckpoints,
  type ManifestFiles,
  type PodConfig,
  type SourceProblem,
  StaticUids,
} from '../sources/index.ts';
import type { NodeJournal } from './node-journal.ts';
import type { KubeletSettings } from './settings.ts';

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
  /** Whether the pod was let run here since the machine was started. */
  readonly ranHere: (uid: PodUid) => boolean;
}

/** The sources of pods the settings ask for. */
export function sourceNames({ staticPodPath, staticPodUrl, apiPods }: KubeletSettings): readonly PodSource[] {
  return [
    ...(staticPodPath === '' ? [] : (['file'] as const)),
    ...(staticPodUrl === '' ? [] : (['http'] as const)),
    ...(apiPods === 'expected' ? (['api'] as const) : []),
  ];
}

/** Those of them that read manifests, each with a name for people. */
export function manifestSources(
  settings: KubeletSettings,
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
    onMended: (path: string) => node.note(`${path} has no problem any more`),
  } as const;
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
