export { ApiSource } from './api-source.ts';
export { StaticUids } from './claims.ts';
export {
  type FileFacts,
  hostManifestFiles,
  isManifestName,
  type ManifestFiles,
  type WatchListener,
} from './file-scan.ts';
export { FileSource, type FileSourceOptions } from './file-source.ts';
export { type HttpAnswer, type HttpGet, HttpSource, type HttpSourceOptions, httpGet } from './http-source.ts';
export { type KeptFiles, KeptManifests, type LastGoodManifests } from './kept-manifests.ts';
export {
  companionKinds,
  type ManifestPod,
  ManifestReader,
  type ManifestReading,
  manifestLimit,
} from './manifest.ts';
export type { ManifestPlace } from './manifest-place.ts';
export type { PodListChanges, PodOperation } from './merge.ts';
export { PodConfig, type PodConfigOptions, type PodUpdate } from './pod-config.ts';
export { describeProblem, type SourceProblem } from './problems.ts';
export { problemsOfPod } from './problems-of-pod.ts';
