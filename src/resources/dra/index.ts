export type { ResourceClaim } from './claim-info.ts';
export { type DraChannel, DraDrivers, type DraDriversDeps, type DraPlugin } from './dra-drivers.ts';
export { type ClaimFile, DraManager, type DraManagerDeps, prepareClaims } from './dra-manager.ts';
export { type DraObserver, draMetrics } from './metrics.ts';
