export { type LogindOptions, logindShutdowns } from './logind.ts';
export {
  byShutdownGroup,
  NodeShutdown,
  type NodeShutdownDeps,
  type ShutdownConfig,
  type ShutdownGroup,
  type ShutdownSource,
  type ShutdownWatch,
  shutdownGroups,
  shutdownTimes,
  wholeSeconds,
} from './node-shutdown.ts';
