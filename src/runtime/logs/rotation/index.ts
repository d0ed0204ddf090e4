export {
  ContainerLogManager,
  type ContainerLogManagerDeps,
  type ContainerLogPolicy,
  type LoggingContainer,
} from './container-log-manager.ts';

export { realRotationFiles } from './real-rotation-files.ts';
export type { LogFile, RotationFiles } from './rotation-files.ts';
