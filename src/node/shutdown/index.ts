export { type LogindOptions, logindShutdowns } from './logind.ts';
export {
  NodeShutdown,
  type NodeShutdownDeps,
  type ShutdownAnnouncer,
  type ShutdownWatch,
} from './node-shutdown.ts';
export {
  byShutdownGroup,
  type ShutdownConfig,
  type ShutdownGroup,
  shutdownGroups,
  wholeSeconds,
} from './shutdown-groups.ts';
