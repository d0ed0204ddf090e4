/** The HTTPS server of the API: parses requests, authorizes them and encodes responses. */
export { ApiServer, type ListenOptions } from './api-server.ts';
export type {
  ApiBackend,
  ApiServerDeps,
  AuthorizationResult,
  ClientInfo,
  DocumentRequest,
  PlainResponse,
  PublishedDocuments,
  RequestSecurity,
  ResourceLookup,
  StreamCall,
  StreamProxy,
  VerifiedClientCertificate,
} from './server-deps.ts';
