export { type LogindOptions, logindShutdowns } from './logind.ts';
export {
  byShutdownGroup,
  NodeShutdown,
  type NodeShutdownDeps,
  type ShutdownAnnouncer,
  type ShutdownConfig,
  type ShutdownGroup,
  type ShutdownWatch,
  shutdownGroups,
  wholeSeconds,
} from './node-shutdown.ts';
