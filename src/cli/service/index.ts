/** What a process owes to who runs it as a service of the machine. */

export { ConfigReload, type LiveConfig } from './config-reload.ts';
export { NodeLock, type NodeLockDeps } from './node-lock.ts';
export { allowOpenFiles, openFileLimits } from './open-files.ts';
export { runAsService, type Service } from './run-as-service.ts';
export {
  feedWatchdog,
  type ServiceManager,
  serviceManager,
  type VitalCheck,
  watchdogMs,
} from './service-manager.ts';
