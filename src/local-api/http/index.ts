/** The HTTPS front of the API: it understands requests, asks who may, and words answers. */
export { ApiFront, type ListenOptions } from './api-server.ts';
export type {
  AccessAnswer,
  CallerFacts,
  FrontApi,
  FrontCatalogue,
  FrontDeps,
  FrontPages,
  FrontSecurity,
  FrontStreams,
  PageRequest,
  PeerCertificate,
  PlainAnswer,
  StreamCall,
} from './server-deps.ts';
