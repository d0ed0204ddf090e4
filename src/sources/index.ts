export { ApiSource } from './api-source.ts';
export {
  type FileFacts,
  hostManifestFiles,
  isManifestName,
  type ManifestFiles,
  type WatchListener,
} from './file-scan.ts';
export { FileSource, type FileSourceOptions } from './file-source.ts';
export {
  type HttpGet,
  HttpSource,
  type HttpSourceOptions,
  httpGet,
  type ManifestResponse,
} from './http-source.ts';
export {
  companionKinds,
  type ManifestPod,
  ManifestReader,
  type ManifestReading,
  manifestLimit,
} from './manifest.ts';
export { type CheckpointFiles, type LastGoodManifests, ManifestCheckpoints } from './manifest-checkpoints.ts';
export { StaticUids } from './manifest-claims.ts';
export type { ManifestOrigin } from './manifest-origin.ts';
export { manifestSources, sourceNames } from './manifest-sources.ts';
export type { PodListChanges, PodOperation } from './merge.ts';
export { PodConfig, type PodConfigOptions, type PodUpdate } from './pod-config.ts';
export { describeProblem, problemsOfPod, type SourceProblem } from './problems.ts';
