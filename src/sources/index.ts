export { ApiSource } from './api-source.ts';
export { isManifestName } from './file-scan.ts';
export { FileSource, type FileSourceOptions } from './file-source.ts';
export { type FileFacts, hostManifestFiles, type ManifestFiles, type WatchListener } from './files.ts';
export { type HttpAnswer, type HttpGet, httpGet } from './http-fetch.ts';
export { HttpSource, type HttpSourceOptions } from './http-source.ts';
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
export { StaticUids } from './static-uids.ts';
